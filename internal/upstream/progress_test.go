package upstream

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"testing"
)

func TestProgress_WhatFailedIsNotOver(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"success": nil, "the request's own deadline": context.DeadlineExceeded} {
		var p progress
		trace := httptrace.ContextClientTrace(p.watch(t.Context()))
		trace.DNSStart(httptrace.DNSStartInfo{})
		trace.DNSDone(httptrace.DNSDoneInfo{Err: err})
		if got, want := p.resolving.Load(), err != nil; got != want {
			t.Errorf("%s: resolving = %v, want %v", name, got, want)
		}
		trace.TLSHandshakeStart()
		trace.TLSHandshakeDone(tls.ConnectionState{}, err)
		if got, want := p.handshaking.Load(), err != nil; got != want {
			t.Errorf("%s: handshaking = %v, want %v", name, got, want)
		}
		trace.GotConn(httptrace.GotConnInfo{})
		trace.GotFirstResponseByte()
		if p.handshaking.Load() || !p.connected.Load() || !p.answered.Load() {
			t.Errorf("%s: handshaking = %v, connected = %v, answered = %v", name, p.handshaking.Load(), p.connected.Load(), p.answered.Load())
		}
	}
}
