//! Reads stamped with the moment at which the kernel received them: a request that waited in the socket while the
//! thread served others arrived when it arrived, and the server owes it its first token from then on.

use std::io;
use std::os::fd::AsRawFd;

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use crate::clock;

/// Moves of the time of day against the monotonic clock beyond this are a step of the former, and void the stamps
/// taken before it.
const STEP: u64 = 50_000;

/// The reader of one thread.
#[derive(Debug)]
pub(crate) struct Arrivals {
    control: Vec<u8>,
    ahead: Option<u64>,
}

impl Arrivals {
    pub(crate) fn new() -> Self {
        Self {
            control: cmsg_space!(TimeSpec),
            ahead: None,
        }
    }

    /// One read: its length, and when its newest byte arrived; the moment after the read where the kernel does not
    /// tell.
    pub(crate) fn read(&mut self, socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<(usize, u64)> {
        let mut parts = [io::IoSliceMut::new(buffer)];
        let message = recvmsg::<()>(
            socket.as_raw_fd(),
            &mut parts,
            Some(&mut self.control),
            MsgFlags::empty(),
        );
        let real = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, nanos);
        let now = clock::now();
        let message = message?;
        let ahead = real.wrapping_sub(now);
        let stepped = self
            .ahead
            .replace(ahead)
            .is_some_and(|before| before.abs_diff(ahead) > STEP);
        let received = message.cmsgs().ok().and_then(|mut controls| {
            controls.find_map(|control| match control {
                ControlMessageOwned::ScmTimestampns(stamp) => Some(nanos(stamp)),
                _ => None,
            })
        });
        let waited = received
            .filter(|_| !stepped)
            .and_then(|received| real.checked_sub(received));
        Ok((message.bytes, now - waited.unwrap_or(0).min(now)))
    }
}

fn nanos(spec: TimeSpec) -> u64 {
    (spec.tv_sec() as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(spec.tv_nsec() as u64)
}
