package hostiletest

import (
	"bytes"
	"crypto/tls"
	"io"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A stream is one request over HTTP/2, on a connection whose frames are written by hand.
type stream struct {
	*http2.Framer
	talk   *talk
	id     uint32
	over   bool // the request has ended
	packed bytes.Buffer
	packer *hpack.Encoder
}

// serveH2 speaks HTTP/2: well for the probe, and as the plan says for the work.
func (h *host) serveH2(t *talk) {
	server := tls.Server(t.Conn, &tls.Config{Certificates: []tls.Certificate{valid}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}})
	if server.Handshake() != nil {
		return
	}
	t.Conn = server
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(server, preface); err != nil {
		return
	}
	f := http2.NewFramer(server, server)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.AllowIllegalWrites = true
	s := &stream{Framer: f, talk: t}
	s.packer = hpack.NewEncoder(&s.packed)
	_ = f.WriteSettings(h.settings...)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = f.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			s.id, s.over = frame.StreamID, frame.StreamEnded()
			if frame.PseudoValue("path") == probeTo {
				h.paths.Store(probeTo, true)
				s.head(true, ":status", "200")
				continue
			}
			h.paths.Store(frame.PseudoValue("path"), true)
			h.asked.Add(1)
			h.h2(s)
		case *http2.DataFrame:
			if n := uint32(len(frame.Data())); n > 0 { //nolint:gosec // a frame's length
				_ = f.WriteWindowUpdate(0, n)
				_ = f.WriteWindowUpdate(frame.StreamID, n)
			}
		}
	}
}

// head writes headers: names and values in turn.
func (s *stream) head(last bool, fields ...string) {
	s.part(s.pack(fields...), last, true)
}

// part writes a block of packed headers, in one frame.
func (s *stream) part(block []byte, last, whole bool) {
	_ = s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: block, EndStream: last, EndHeaders: whole})
}

// pack packs headers.
func (s *stream) pack(fields ...string) []byte {
	s.packed.Reset()
	for i := 0; i+1 < len(fields); i += 2 {
		_ = s.packer.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(s.packed.Bytes())
}

// evil are forged headers as HTTP/2 spells them.
var evil = []string{"payment-response", "evil", "payment-required", "evil", "market-outcome", "evil", "set-cookie", "evil=1", "access-control-allow-origin",
	"https://evil.test", "alt-svc", `h3="evil.test:443"`, "cache-control", "public, evil"}

// ok writes the head of a good answer.
func (s *stream) ok(more ...string) {
	s.head(false, append(append([]string{":status", "200", "content-type", "application/json"}, evil...), more...)...)
}

// body writes a piece of an answer.
func (s *stream) body(last bool, text string) { _ = s.WriteData(s.id, last, []byte(text)) }

// pour writes without end, as its window lets it.
func (s *stream) pour() {
	chunk, window := make([]byte, 1<<14), 64<<10 // no stream begins with less
	until(func() error {
		for window < len(chunk) {
			frame, err := s.ReadFrame()
			if err != nil {
				return err
			}
			if more, ok := frame.(*http2.WindowUpdateFrame); ok && more.StreamID == s.id {
				window += int(more.Increment)
			}
		}
		window -= len(chunk)
		return s.WriteData(s.id, false, chunk)
	})
}

// until does something until the connection breaks.
func until(f func() error) {
	for f() == nil {
	}
}

func h2Rows() []row {
	does := func(name string, f func(*stream), w want) row { return row{name: name, plan: plan{h2: f}, want: w} }
	return []row{
		does("it serves", func(s *stream) { s.ok(); s.body(true, done) }, serves(done)),
		does("it forges trailers", func(s *stream) {
			s.ok()
			s.body(false, done)
			s.head(true, "market-outcome", "evil", "set-cookie", "evil=1")
		}, serves(done)),
		does("it sends interim answers with forged headers", func(s *stream) {
			s.head(false, append([]string{":status", "103"}, evil...)...)
			s.ok()
			s.body(true, done)
		}, serves(done)),
		does("it sends interim answers without end", func(s *stream) {
			until(func() error {
				block := s.pack(append([]string{":status", "103"}, evil...)...)
				return s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: block, EndHeaders: true})
			})
		}, badResponse),
		does("it resets the stream before it answers", func(s *stream) { _ = s.WriteRSTStream(s.id, http2.ErrCodeInternal) }, unreachable),
		does("it resets the stream within its answer (B93)", func(s *stream) { s.ok(); s.body(false, done); _ = s.WriteRSTStream(s.id, http2.ErrCodeInternal) }, badResponse),
		does("it says that it did not begin, whenever it is asked (asked once)", func(s *stream) { _ = s.WriteRSTStream(s.id, http2.ErrCodeRefusedStream) }, unreachable),
		does("it finds fault with the protocol, whenever it is asked (asked once)", func(s *stream) { _ = s.WriteRSTStream(s.id, http2.ErrCodeProtocol) }, unreachable),
		does("it goes away as if it had not been asked (asked once)", func(s *stream) { _ = s.WriteGoAway(1, http2.ErrCodeNo, nil); s.talk.reset() }, unreachable),
		does("it goes away with an error, and says that it will answer first", func(s *stream) { _ = s.WriteGoAway(s.id, http2.ErrCodeInternal, []byte("evil")) }, timeout).briefly(),
		does("it goes away within its answer (B93)", func(s *stream) {
			s.ok()
			s.body(false, done)
			_ = s.WriteGoAway(s.id, http2.ErrCodeInternal, []byte("evil"))
		}, timeout).briefly(),
		does("it says goodbye and ends its answer all the same", func(s *stream) {
			s.ok()
			_ = s.WriteGoAway(s.id, http2.ErrCodeNo, nil)
			s.body(true, done)
		}, serves(done)),
		does("it hangs up within its answer (B93)", func(s *stream) { s.ok(); s.body(false, done); s.talk.pause(20 * time.Millisecond); s.talk.reset() }, badResponse),
		does("it hangs up before it answers", func(s *stream) { s.talk.reset() }, unreachable),
		does("it announces more than it sends (B93)", func(s *stream) { s.ok("content-length", "1000"); s.body(true, done) }, badResponse),
		does("it announces less than it sends", func(s *stream) { s.ok("content-length", "3"); s.body(true, done) }, badResponse),
		does("it announces 5 GB", func(s *stream) { s.ok("content-length", strconv.Itoa(5<<30)); s.body(false, done) }, tooLarge),
		does("it sends without end", func(s *stream) { s.ok(); s.pour() }, tooLarge),
		does("it sends without end, and more than its window lets it", func(s *stream) {
			s.ok()
			chunk := make([]byte, 1<<14)
			until(func() error { return s.WriteData(s.id, false, chunk) })
		}, badResponse),
		does("it sends empty frames without end", func(s *stream) { s.ok(); until(func() error { return s.WriteData(s.id, false, nil) }) }, timeout).briefly(),
		does("it sends pings without end", func(s *stream) { until(func() error { return s.WritePing(false, [8]byte{}) }) }, timeout).briefly(),
		does("it sends settings without end", func(s *stream) { until(func() error { return s.WriteSettings() }) }, timeout).briefly(),
		does("it opens its own stream for what nobody asked for", func(s *stream) {
			_ = s.WritePushPromise(http2.PushPromiseParam{StreamID: s.id, PromiseID: 2, BlockFragment: s.pack(":method", "GET", ":path", "/evil"), EndHeaders: true})
			s.ok()
			s.body(true, done)
		}, unreachable),
		does("it sends one header of 1 MB", func(s *stream) { huge(s, 1) }, unreachable),
		does("it sends headers without end", func(s *stream) { huge(s, 1<<20) }, unreachable),
		does("it packs headers that unpack to 100 MB", func(s *stream) {
			s.part(s.pack(":status", "200", "x-evil", string(bytes.Repeat([]byte("e"), 3000))), false, false)
			for range 35 {
				// Each byte is the header above again, out of the table.
				_ = s.WriteContinuation(s.id, false, bytes.Repeat([]byte{0xbe}, 1000))
			}
			_ = s.WriteContinuation(s.id, true, nil)
		}, unreachable),
		does("it sends headers that cannot be unpacked", func(s *stream) { s.part([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, true, true) }, unreachable),
		does("it sends no status", func(s *stream) { s.head(true, "content-type", "text/evil") }, badResponse),
		does("it sends a status of letters", func(s *stream) { s.head(true, ":status", "evil") }, badResponse),
		does("it answers 099", func(s *stream) { s.head(true, ":status", "099") }, badResponse),
		does("it switches protocols, which HTTP/2 cannot, and serves", func(s *stream) { s.head(false, ":status", "101"); s.ok(); s.body(true, done) }, serves(done)),
		does("it writes header names in capitals", func(s *stream) { s.head(true, ":status", "200", "Set-Cookie", "evil=1") }, unreachable),
		does("it hides a line break in a header", func(s *stream) { s.head(true, ":status", "200", "content-type", "text/plain\r\nset-cookie: evil=1") }, unreachable),
		does("it answers on a stream that does not exist", func(s *stream) { s.id += 100; s.ok(); s.body(true, done) }, unreachable),
		does("it sends bytes that are no frames", func(s *stream) { _, _ = s.talk.Write(bytes.Repeat([]byte("evil"), 1<<12)) }, unreachable),
		does("it speaks HTTP/1.1 where HTTP/2 was agreed on", func(s *stream) { s.talk.say(answer("200 OK", done, typeJSON)); s.talk.wait() }, unreachable),
		does("it never answers", func(*stream) {}, timeout).briefly(),
		{name: "it never takes a byte of the request", plan: plan{h2: func(*stream) {}, settings: []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 0}}}, big: true,
			listing: soon(), want: timeout},
		{name: "it allows no streams after the probe", plan: plan{h2: func(s *stream) { s.ok(); s.body(true, done) }, settings: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 1}}},
			want: serves(done)},
	}
}

// huge sends so many headers of 1 MB that are not packed.
func huge(s *stream, n int) {
	s.part(s.pack(":status", "200"), false, false)
	head := []byte{0x00, 6, 'x', '-', 'e', 'v', 'i', 'l', 0x7f, 0x81, 0xff, 0x3f} // literal, not indexed, with a value of 1 MB
	piece := bytes.Repeat([]byte("e"), 1<<14)
	for range n {
		if s.WriteContinuation(s.id, false, head) != nil {
			return
		}
		for range 1 << 20 / len(piece) {
			if s.WriteContinuation(s.id, false, piece) != nil {
				return
			}
		}
	}
	_ = s.WriteContinuation(s.id, true, nil)
}
