"""The cloud on this machine: AWS's interface, answered by moto, with a ledger of every change."""
