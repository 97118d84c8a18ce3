"""The simulated cloud: AWS's API, implemented by moto, with a ledger of every change."""
