"""Where the runs of a sweep are computed: processes of this machine, or a Ray cluster."""
