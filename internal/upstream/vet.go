package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"market/internal/catalog"
)

// A HostError says what is wrong with the host of a base URL, for its owner.
type HostError struct{ Problem string }

func (e *HostError) Error() string { return "host " + e.Problem }

// Vet looks up where a checked base URL leads, by the same rules as every dial. A *HostError says why a service must not be there. Any other
// error is about us, and says nothing about the host. In development everything goes.
func (c *Client) Vet(ctx context.Context, baseURL string) error {
	if c.dialer.vet == nil {
		return nil
	}
	u, err := url.Parse(baseURL)
	if err != nil {
		return fmt.Errorf("vet base URL: %w", err)
	}
	addresses, err := c.dialer.lookUp(ctx, u.Hostname())
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return &HostError{fmt.Sprintf("names the host %s, which does not exist or has no address", u.Hostname())}
	}
	if err != nil {
		return fmt.Errorf("vet host %s: %w", u.Hostname(), err)
	}
	for _, a := range addresses {
		if !catalog.PublicAddress(a) {
			return &HostError{fmt.Sprintf("leads to %s, which is not a public address", a.Unmap())}
		}
	}
	return nil
}
