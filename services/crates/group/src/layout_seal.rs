//! The end of what was appended to a partition under former layouts (`docs/internals/partitions.md`, "Growth").

use quorate_chain::Replica;
use quorate_types::{Layout, Offset};

/// A head that goes by a layout tells the coordinator the end of all entries of former ones, once they are committed.
#[derive(Debug, Default)]
pub(crate) struct LayoutSeal {
    untold: Option<Untold>,
}

#[derive(Debug)]
struct Untold {
    layout: Layout,
    /// The log's end when the chain had agreed with this head; `None`: it has not yet. Before that, another head could
    /// still have committed entries of a former layout.
    end_offset: Option<Offset>,
}

impl LayoutSeal {
    /// A configuration came, perhaps again: the coordinator may not have heard.
    pub fn begin(&mut self, replica: &Replica) {
        let layout = replica.layout();
        let is_told = replica.is_head() && !layout.is_none();
        self.untold = is_told.then_some(Untold {
            layout,
            end_offset: None,
        });
    }

    /// The layout and the end, when they are to be told.
    pub fn end(&mut self, replica: &Replica) -> Option<(Layout, Offset)> {
        let untold = self.untold.as_mut()?;
        if untold.end_offset.is_none() && replica.chain_agrees() {
            untold.end_offset = Some(replica.log().next_offset());
        }
        let end_offset = untold.end_offset.filter(|end| replica.commit_offset() >= *end)?;
        let layout = untold.layout;
        self.untold = None;
        Some((layout, end_offset))
    }
}
