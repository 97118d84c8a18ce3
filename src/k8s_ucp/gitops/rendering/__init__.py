"""What a template's path stands for: core.py for the core repository, apps.py for the other."""
