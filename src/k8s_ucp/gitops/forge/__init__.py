"""Pull requests on GitHub, GitLab and Gitea."""
