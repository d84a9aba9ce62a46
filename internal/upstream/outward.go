package upstream

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// Outward returns a way to messages of ours, which are no calls: to addresses that strangers named, by the same rules as every request to a service.
// Nothing inner is connected to, whatever a name leads to; no proxy is asked and no redirect followed, as long as the http.Client around it follows
// none. An error is in words for whoever named the address: it tells nothing of our network.
func (c *Client) Outward() http.RoundTripper { return outward{c} }

type outward struct{ *Client }

func (o outward) RoundTrip(r *http.Request) (*http.Response, error) {
	var p progress
	response, err := o.transport.RoundTrip(r.WithContext(p.watch(r.Context())))
	if err == nil {
		return response, nil
	}
	// A deadline is the receiver's to meet. Only who gives up before it has stopped the request.
	stopped := errors.Is(r.Context().Err(), context.Canceled)
	return nil, errors.New(strings.ReplaceAll(classify(err, &p, stopped).detail, "the service", "the receiver")) // who listens is no service of ours
}
