"""Apps that objects of Argo CD declare: Applications and ApplicationSets."""
