"""Installs programs and images, and publishes the repositories, before there is a cluster."""
