package config

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// errForm is a value that cannot be read. The report says what is expected, so it needs no more words.
var errForm = errors.New("malformed")

// An Address is host:port to listen on. An empty host is every address, port 0 leaves it to the system.
type Address string

// UnmarshalText checks the form.
func (a *Address) UnmarshalText(text []byte) error {
	_, port, err := net.SplitHostPort(string(text))
	if err != nil {
		return err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errForm
	}
	*a = Address(text)
	return nil
}

// localURL is how a browser on this machine reaches the address; empty while the port is not known.
func (a Address) localURL() string {
	host, port, err := net.SplitHostPort(string(a))
	if err != nil || port == "0" {
		return ""
	}
	if ip, err := netip.ParseAddr(host); host == "" || (err == nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// Prefixes are ranges of IP addresses. A single address is a range of one.
type Prefixes []netip.Prefix

// UnmarshalText reads a list separated by commas; "none" is the empty list.
func (p *Prefixes) UnmarshalText(text []byte) error {
	*p = Prefixes{}
	if string(text) == "none" {
		return nil
	}
	for item := range strings.SplitSeq(string(text), ",") {
		prefix, err := parsePrefix(strings.TrimSpace(item))
		if err != nil {
			return err
		}
		*p = append(*p, prefix)
	}
	return nil
}

func parsePrefix(item string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(item); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(item)
	if err != nil {
		return netip.Prefix{}, err
	}
	// Peers' addresses are compared unmapped, so a mapped range would match none of them.
	if prefix.Addr().Is4In6() {
		return netip.Prefix{}, errForm
	}
	return prefix.Masked(), nil
}

// Wallets are addresses on the chain, each once.
type Wallets []string

const walletsMax = 100

// UnmarshalText reads a list separated by commas; "none" is the empty list.
func (w *Wallets) UnmarshalText(text []byte) error {
	*w = Wallets{}
	if string(text) == "none" {
		return nil
	}
	for item := range strings.SplitSeq(string(text), ",") {
		wallet := strings.TrimSpace(item)
		if !addressForm.MatchString(wallet) || strings.Trim(wallet, "0x") == "" || len(*w) == walletsMax {
			return errForm
		}
		*w = append(*w, wallet)
	}
	return nil
}

// KeyFiles are keystore files, each with the file of its password.
type KeyFiles []KeyFile

// A KeyFile is an encrypted key on the disk.
type KeyFile struct{ Keystore, PasswordFile string }

// UnmarshalText reads "keystore=password file" pairs, separated by commas.
func (k *KeyFiles) UnmarshalText(text []byte) error {
	*k = nil
	for item := range strings.SplitSeq(string(text), ",") {
		keystore, password, found := strings.Cut(strings.TrimSpace(item), "=")
		if !found || keystore == "" || password == "" {
			return errForm
		}
		*k = append(*k, KeyFile{keystore, password})
	}
	return nil
}

// A Limit is so many in a window of time.
type Limit struct {
	Count  int
	Window time.Duration
}

// UnmarshalText reads "5/10m".
func (l *Limit) UnmarshalText(text []byte) error {
	count, window, found := strings.Cut(string(text), "/")
	n, errCount := strconv.Atoi(count)
	d, errWindow := time.ParseDuration(window)
	if !found || errCount != nil || errWindow != nil || n < 1 || n > 1_000_000 || d < time.Second || d > 24*time.Hour {
		return errForm
	}
	*l = Limit{n, d}
	return nil
}

// A LogLevel is the least that is logged.
type LogLevel string

// UnmarshalText takes the four levels.
func (l *LogLevel) UnmarshalText(text []byte) error {
	switch level := string(text); level {
	case "debug", "info", "warn", "error":
		*l = LogLevel(level)
		return nil
	}
	return errForm
}

// USD is an amount of US dollars.
type USD struct{ decimal.Decimal }

// UnmarshalText reads "0.50". The form has no sign and no exponent, so nothing is expanded which nobody would write.
func (u *USD) UnmarshalText(text []byte) (err error) {
	if !usdForm.Match(text) {
		return errForm
	}
	u.Decimal, err = decimal.NewFromString(string(text))
	return err
}
