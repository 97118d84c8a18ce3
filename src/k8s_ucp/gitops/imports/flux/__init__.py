"""What Flux deploys: releases of charts, as files and kustomizations have them."""
