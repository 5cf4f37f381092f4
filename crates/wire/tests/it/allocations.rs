//! What one token costs in allocations: none.
#![expect(unsafe_code, reason = "a counting allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;

use shakedown_model::Api;
use shakedown_wire::openai::parse_event;
use shakedown_wire::response::{Limits, Piece, ResponseReader};
use shakedown_wire::sse::{SseEvent, SseReader};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator unchanged; the counter is a plain cell of the thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(run: impl FnOnce()) -> u64 {
    let before = COUNT.with(Cell::get);
    run();
    COUNT.with(Cell::get) - before
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1_u8; 100]))), 1);
}

/// The whole read path of both recordings, one event a read: after the head, not one allocation.
#[test]
fn a_token_costs_no_allocation() {
    for stream in [
        include_bytes!("../data/chat-vllm.sse").as_slice(),
        include_bytes!("../data/chat-llamacpp.sse"),
    ] {
        let text = std::str::from_utf8(stream).unwrap();
        let reads: Vec<Vec<u8>> = text
            .split_inclusive("\n\n")
            .map(|event| chunk(event.as_bytes()))
            .collect();
        assert!(reads.len() > 60);
        let mut http = ResponseReader::new(Limits::default());
        http.read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            .unwrap();
        let mut sse = SseReader::new(shakedown_wire::sse::DEFAULT_CAP);
        let mut texts = 0;
        let count = allocations(|| {
            for read in &reads {
                let mut rest = read.as_slice();
                while !rest.is_empty() {
                    let (consumed, piece) = http.read(rest).unwrap();
                    rest = &rest[consumed..];
                    let Piece::Body(body) = piece else { continue };
                    sse.push(body, |event| {
                        if let SseEvent::Data { data, .. } = event {
                            let event = parse_event(Api::Chat, data).unwrap();
                            texts += event.deltas.len();
                        }
                        ControlFlow::Continue(())
                    })
                    .unwrap();
                }
            }
        });
        assert!(texts > 60);
        // A JSON string with escapes cannot be borrowed: serde_json's scratch and the text itself. The recordings
        // have a few, line breaks and quotes.
        let escapes = text
            .lines()
            .filter(|line| line.contains("\"content\":\"") && line.contains('\\'))
            .count();
        assert!(
            count <= 2 * escapes as u64,
            "{count} allocations, {escapes} texts with escapes"
        );
    }
}

/// Events that reads cut in two are copied into buffers that are reused.
#[test]
fn split_events_reuse_their_buffer() {
    let event = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n";
    let mut sse = SseReader::new(shakedown_wire::sse::DEFAULT_CAP);
    let mut seen = 0;
    let mut push_cut = |at: usize| {
        for part in [&event[..at], &event[at..]] {
            sse.push(part, |_| {
                seen += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        }
    };
    push_cut(event.len() - 1);
    push_cut(event.len() - 3);
    let count = allocations(|| (1..event.len()).for_each(&mut push_cut));
    assert_eq!(seen, event.len() + 1);
    assert_eq!(count, 0);
}
