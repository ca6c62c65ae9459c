"""Rank tables in Kubernetes ConfigMaps: find them in what `kubectl` prints, and write a ConfigMap."""
