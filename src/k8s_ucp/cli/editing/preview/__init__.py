"""What a change of ucp.yaml would do: files, objects, permissions. Nothing is written."""
