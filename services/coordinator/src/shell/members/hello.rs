//! The first frames of a connection between coordinators.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use quorate_quorum::MemberId;
use quorate_types::limits::{HELLO_TIMEOUT_MS, MEMBER_MESSAGE_BYTES_MAX};
use quorate_types::{FleetId, Versions, versions};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use super::ring_offer::RingOffer;

pub type Frames<S> = Framed<S, LengthDelimitedCodec>;

/// Addresses for servers and callers: `host:port`, or empty if that is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    #[serde(default)]
    pub control: String,
    #[serde(default)]
    pub http: String,
    /// Versions of the fleet that it can be part of. Older coordinators do not say: the first.
    #[serde(default)]
    pub fleet_versions: Versions,
}

impl Contact {
    /// The contact of this process.
    pub fn new(control: String, http: String) -> Self {
        Self {
            control,
            http,
            fleet_versions: versions::FLEET,
        }
    }
}

/// This coordinator, as others know it. An empty disk learns its fleet from the first one that greets it.
#[derive(Debug, Clone)]
pub struct Identity {
    pub member: MemberId,
    /// Random at each start.
    pub process: String,
    pub fleet: Arc<OnceLock<FleetId>>,
    /// The fleet's version, as the log has it; 0: not known yet.
    pub fleet_version: Arc<AtomicU16>,
    /// Others reach it there. Empty: it stays alone.
    pub address: String,
    pub contact: Contact,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The oldest version of the links that it speaks.
    version: u16,
    /// The newest. Older coordinators do not say: the same.
    #[serde(default)]
    newest_version: u16,
    fleet: Option<String>,
    pub member: String,
    pub process: String,
    /// The member that is meant. None: whoever it is.
    to: Option<String>,
    /// The sender is reached there.
    pub address: String,
    #[serde(flatten)]
    pub contact: Contact,
    /// It wants to be taken in, or to be known there.
    pub joins: bool,
    /// It asks for the fleet alone.
    #[serde(default)]
    pub looks: bool,
    /// Messages may go by one-sided writes. Older coordinators do not offer it, and do not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<RingOffer>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// Messages may follow, of this version: the newest that both speak. Older coordinators do not say: the first.
    Welcome {
        #[serde(default = "first")]
        version: u16,
        /// Messages go by one-sided writes, as was offered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ring: Option<RingOffer>,
    },
    Refused {
        message: String,
    },
    Join(JoinAnswer),
    /// None: nobody has taken this one in.
    Fleet {
        fleet: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "join", rename_all = "snake_case")]
pub enum JoinAnswer {
    /// The leader sends the log.
    TakenIn,
    /// None: nobody leads at present.
    AskLeader {
        address: Option<String>,
    },
    Refused {
        message: String,
    },
}

fn first() -> u16 {
    1
}

impl Identity {
    /// A wish to be taken in goes to whoever is there.
    pub fn hello(&self, to: Option<MemberId>) -> Hello {
        Hello {
            version: versions::MEMBERS.oldest,
            newest_version: versions::MEMBERS.newest_told(),
            fleet: self.fleet.get().map(FleetId::to_string),
            member: self.member.to_string(),
            process: self.process.clone(),
            to: to.map(|to| to.to_string()),
            address: self.address.clone(),
            contact: self.contact.clone(),
            joins: to.is_none(),
            looks: false,
            ring: None,
        }
    }

    /// A question for the fleet of whoever is there.
    pub fn looks(&self) -> Hello {
        Hello {
            joins: false,
            looks: true,
            ..self.hello(None)
        }
    }

    /// The sender of a hello, or the reason why it is refused. The fleet's key has been checked before.
    pub fn check(&self, hello: &Hello) -> Result<(MemberId, u16), String> {
        let version = self.check_versions(hello)?;
        let from =
            u64::from_str_radix(&hello.member, 16).map_err(|_| "its member is no number".to_string())?;
        if let Some(fleet) = &hello.fleet {
            let fleet: FleetId = fleet.parse().map_err(|_| "its fleet is no number".to_string())?;
            let own = *self.fleet.get_or_init(|| fleet);
            if own != fleet {
                return Err(format!(
                    "it belongs to the fleet {fleet}, and this one to {own}: two fleets have the same key; check \
                     --join and the addresses of coordinators"
                ));
            }
        }
        let is_meant = hello.to.as_ref().is_none_or(|to| *to == self.member.to_string());
        if !is_meant {
            return Err(format!(
                "another member is meant than {}: its disk was replaced, or the address is another's",
                self.member
            ));
        }
        if from == self.member.0 {
            return Err("it shows this member's own number: is its folder a copy?".into());
        }
        Ok((MemberId(from), version))
    }

    /// The newest version that both speak.
    fn check_versions(&self, hello: &Hello) -> Result<u16, String> {
        let ours = versions::MEMBERS;
        let theirs = Versions::told(hello.version, hello.newest_version);
        let theirs = theirs.ok_or("its versions end before they begin")?;
        let version = ours.agree(theirs).ok_or_else(|| {
            format!(
                "it speaks {theirs} of the coordinators' links, and this one {ours}: run releases that are next to one \
                 another"
            )
        })?;
        let fleet = self.fleet_version.load(Ordering::Relaxed);
        let reads = hello.contact.fleet_versions;
        if fleet > 0 && !reads.has(fleet) {
            return Err(format!(
                "the fleet has version {fleet}, and its release reads {reads}: install another release there"
            ));
        }
        Ok(version)
    }
}

pub fn frames<S: AsyncRead + AsyncWrite + Unpin>(stream: S) -> Frames<S> {
    Framed::new(stream, frame_codec())
}

pub fn frame_codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder()
        .max_frame_length(MEMBER_MESSAGE_BYTES_MAX)
        .new_codec()
}

pub async fn say<S: AsyncRead + AsyncWrite + Unpin>(
    frames: &mut Frames<S>,
    what: &impl Serialize,
) -> Result<(), String> {
    let bytes = serde_json::to_vec(what).expect("hellos serialise");
    in_time(frames.send(Bytes::from(bytes)))
        .await?
        .map_err(|e| e.to_string())
}

/// An answer to a question that was not asked.
pub const SOMETHING_ELSE: &str = "it answers to something else";

/// Says hello, and hears the answer. The error may be its refusal.
pub async fn greet<S: AsyncRead + AsyncWrite + Unpin>(
    frames: &mut Frames<S>,
    hello: &Hello,
) -> Result<Answer, String> {
    say(frames, hello).await?;
    match hear(frames).await? {
        Answer::Refused { message } => Err(message),
        answer => Ok(answer),
    }
}

pub async fn hear<S: AsyncRead + AsyncWrite + Unpin, T: DeserializeOwned>(
    frames: &mut Frames<S>,
) -> Result<T, String> {
    let frame = in_time(frames.next()).await?.ok_or("the connection ended")?;
    let frame = frame.map_err(|e| e.to_string())?;
    serde_json::from_slice(&frame).map_err(|e| format!("not a hello: {e}"))
}

async fn in_time<T>(done: impl Future<Output = T>) -> Result<T, String> {
    let limit = Duration::from_millis(HELLO_TIMEOUT_MS);
    tokio::time::timeout(limit, done)
        .await
        .map_err(|_| "no hello in time".to_string())
}
