//! Tokens: signed by nobody here, they say plainly what a server's check of the signature would yield.

use quorate_types::Permission;

/// A client's request to the API for a token.
#[derive(Debug, Clone, Copy)]
pub struct Grant {
    pub may_append: bool,
    pub may_read: bool,
    /// `None`: its tokens never expire.
    pub lifetime_s: Option<u64>,
}

impl Grant {
    /// A fresh token.
    pub fn token(self, wall_s: u64) -> String {
        let expires_at_s = self.lifetime_s.map_or(u64::MAX, |lifetime_s| wall_s + lifetime_s);
        format!(
            "{} {} {expires_at_s}",
            u8::from(self.may_append),
            u8::from(self.may_read)
        )
    }
}

/// The permission that the token grants.
pub fn permission_of(token: &str) -> Permission {
    let mut parts = token
        .split(' ')
        .map(|part| part.parse::<u64>().expect("a number"));
    let mut next = || parts.next().expect("three numbers");
    Permission {
        may_append: next() == 1,
        may_read: next() == 1,
        project: None,
        layout: quorate_types::Layout(0),
        expires_at_s: next(),
    }
}
