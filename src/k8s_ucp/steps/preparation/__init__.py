"""Programs, images and repositories, before a cluster is there."""
