//! Looking for events before sleeping.
//!
//! A thread that sleeps is woken by an interrupt to its core. On a virtual machine whose cores have nothing else to do
//! that takes tens of microseconds, against one or two for a look at the sockets.

use std::time::{Duration, Instant};

/// Ends after `span`. Until then the runtime looks at its sockets and runs its tasks without sleeping, and lets other
/// threads of the core go first.
pub async fn spin(span: Duration) {
    let until = Instant::now() + span;
    loop {
        std::thread::yield_now();
        tokio::task::yield_now().await;
        if Instant::now() >= until {
            return;
        }
    }
}

/// Waits for `event`, and for the first `span` of that without sleeping.
pub async fn spin_for<T>(span: Duration, event: impl Future<Output = T>) -> T {
    if span.is_zero() {
        return event.await;
    }
    let mut event = std::pin::pin!(event);
    tokio::select! {
        biased;
        came = &mut event => return came,
        () = spin(span) => {}
    }
    event.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_span_ends_and_an_event_ends_it_early() {
        let began = Instant::now();
        spin(Duration::from_millis(2)).await;
        assert!(began.elapsed() >= Duration::from_millis(2));
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let sending = tokio::spawn(async move { sender.send(7) });
        assert_eq!(spin_for(Duration::from_secs(3_600), receiver).await, Ok(7));
        assert_eq!(sending.await.unwrap(), Ok(()));
        assert!(began.elapsed() < Duration::from_secs(60));
        assert_eq!(spin_for(Duration::from_millis(1), async { 8 }).await, 8);
    }
}
