"""Host placement: components as processes of this machine, kept running by supervisord."""
