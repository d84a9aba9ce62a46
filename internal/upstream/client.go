package upstream

import (
	"crypto/tls"
	"net/http"
	"runtime"
	"time"

	"github.com/google/uuid"
)

const (
	tlsTimeout     = 10 * time.Second
	headerBytesMax = 64 << 10
	// streamBytesMax is what a service may send over HTTP/2 ahead of what is read. A connection is not bounded beside that: many streams share it, and
	// those whose callers do not read would leave nothing to the others.
	streamBytesMax      = 128 << 10
	idleConnsPerService = 256

	// Servers drop idle connections after a few seconds (2 to 5 by default in common ones). A request that is sent into such a drop looks
	// like a service that hangs up, so we drop first. Under load connections are never idle this long.
	idleTimeout = 1500 * time.Millisecond
)

// Options configure a Client.
type Options struct {
	AllowPrivate bool             // development: services may be on private addresses
	Canaries     *Canaries        // nil: nobody to ask whether a connection that times out is our trouble
	Resolver     Resolver         // nil: that of the machine
	Now          func() time.Time // for dates in Retry-After; nil is time.Now
}

// A Client sends requests to services. It is safe for concurrent use.
//
// What a request may hold, whatever comes back: 64 KiB of header, over HTTP/2 128 KiB that are not read yet, the body up to the endpoint's max_response_bytes (1 MiB at most, in a buffer
// that has grown at most a quarter past it, or to twice that while it grows), and where its form is promised and it is packed, as much again
// unpacked. What its values take, at worst fifty times its bytes, is held by as many requests at once as there are processors.
type Client struct {
	now       func() time.Time
	dialer    *dialer
	canaries  *Canaries
	transport *http.Transport
	places    *places
	checks    chan struct{} // a place for each check of an answer's form that may run
}

// New returns a client.
func New(o Options) *Client {
	if o.Now == nil {
		o.Now = time.Now
	}
	dialer := newDialer(o.Resolver, o.AllowPrivate)
	checks := make(chan struct{}, runtime.GOMAXPROCS(0))
	return &Client{now: o.Now, dialer: dialer, canaries: o.Canaries, places: &places{of: map[uuid.UUID]placed{}}, checks: checks, transport: &http.Transport{
		// No Proxy: one of the environment would see every request and make the address check meaningless.
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12}, // and nothing that loosens what is verified
		TLSHandshakeTimeout:    tlsTimeout,
		MaxIdleConnsPerHost:    idleConnsPerService,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: headerBytesMax,
		DisableCompression:     true, // bytes, encoding and length reach the caller as they came
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: streamBytesMax},
	}}
}

// Close gives up idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }
