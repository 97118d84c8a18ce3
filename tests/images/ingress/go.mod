module k8s-ucp.io/tests/ingress

go 1.26.0
