package config

import (
	"net"
	"net/url"
	"strconv"
	"strings"
)

// canariesMax bounds how many hosts one connection that timed out makes us ask.
const canariesMax = 8

// Canaries are hosts to connect to, each as host:port.
type Canaries []string

// UnmarshalText reads a list of host:port and of URLs, separated by commas; "none" is the empty list. Of a URL only host and port count.
func (c *Canaries) UnmarshalText(text []byte) error {
	*c = nil
	if string(text) == "none" {
		return nil
	}
	for item := range strings.SplitSeq(string(text), ",") {
		address, err := canary(strings.TrimSpace(item))
		if err != nil {
			return err
		}
		*c = append(*c, address)
	}
	if len(*c) > canariesMax {
		return errForm
	}
	return nil
}

func canary(item string) (string, error) {
	host, port, err := net.SplitHostPort(item)
	if strings.Contains(item, "://") {
		u, err := url.Parse(item)
		if err != nil || !isWeb(u) || u.User != nil {
			return "", errForm
		}
		host, port = u.Hostname(), u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
	} else if err != nil {
		return "", errForm
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" || strings.ContainsAny(host, "/ @") {
		return "", errForm
	}
	return net.JoinHostPort(host, port), nil
}
