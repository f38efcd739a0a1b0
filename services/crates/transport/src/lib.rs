//! Links between servers, and client connections.
