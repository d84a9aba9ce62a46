package corpustest

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"market/internal/app/apptest"
)

// Where calls come from. The market believes what 127.0.0.1 says of whom it asks for, and nobody else; 198.51.100.0/24 is its own.
const (
	proxies    = "127.0.0.1/32"
	ownSources = "198.51.100.0/24"
	ownAddress = "198.51.100.7"
	// providerHome is where a service is whose provider calls it.
	providerHome = "127.0.0.9"
)

// A caller is who makes a call: from a peer, which may name somebody that it asks for.
type caller struct {
	client *http.Client
	names  string // in X-Forwarded-For; empty: nobody
}

// peer is a client that connects from another loopback address.
func peer(address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, at)
	}}}
}

var (
	proxy    = peer("127.0.0.1")
	stranger = peer("127.0.0.2")
	direct   = peer("127.0.0.3")
)

// outside is somebody of a range of its own, behind the proxy.
func outside(n int) caller { return caller{proxy, fmt.Sprintf("198.18.%d.7", n)} }

var (
	ours = caller{proxy, ownAddress}
	// pretender says that it asks for us, and is no proxy of ours.
	pretender = caller{stranger, ownAddress}
	// silent is our proxy when it does not say for whom it asks.
	silent = caller{proxy, ""}
	// provider is who calls from where the service itself is.
	provider = caller{proxy, providerHome}
	// friend is somebody at an address that the provider has put beside its own.
	friend = caller{proxy, "203.0.113.9"}
	// straight is somebody who comes to the door without a proxy.
	straight = caller{direct, ""}
)

// from returns an asking of a caller.
func (c caller) from(a apptest.Asking) apptest.Asking {
	a.Header = a.Header.Clone()
	if c.names == "" {
		return a
	}
	if a.Header == nil {
		a.Header = http.Header{}
	}
	a.Header.Set("X-Forwarded-For", c.names)
	return a
}
