"""Commands that edit ucp.yaml: environments, apps, mirrors, teams and claims."""
