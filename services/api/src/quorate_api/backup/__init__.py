"""Backups of PostgreSQL: base backups, and all that is committed after them, as it is committed.

`tools`: PostgreSQL's own programs. `folder`: what a folder of backups holds. `keeping`: the process that keeps it.
`restoring`: a new cluster from it. `repository`: the server's part.
"""
