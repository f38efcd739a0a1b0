"""`make profile`: what an append costs each role, measured on servers of this machine, and how good the profile is."""
