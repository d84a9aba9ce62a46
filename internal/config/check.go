package config

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

const tokenCharsMin = 16

func (p *problems) checkAddresses(c *Config) {
	p.checkOpsListen(c.Listen, c.OpsListen)
	p.checkPublicURL(c)
	if _, set := p.values["MARKET_OWN_SOURCES"]; !set && !c.Dev {
		c.OwnSources = Prefixes{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
}

func (p *problems) checkOpsListen(public, ops Address) {
	_, port, _ := net.SplitHostPort(string(ops))
	p.check("MARKET_OPS_LISTEN", ops != public || port == "0")
}

// checkPublicURL wants an origin and nothing else: it is put before paths, and signed as part of what a caller pays for.
func (p *problems) checkPublicURL(c *Config) {
	const name = "MARKET_PUBLIC_URL"
	if c.PublicURL == "" {
		if !c.Dev {
			p.wrong(name)
		} else if p.ok("MARKET_LISTEN") {
			c.PublicURL = c.Listen.localURL()
		}
		return
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || !isOrigin(u) || (u.Scheme == "http" && !c.Dev) {
		p.wrong(name)
		return
	}
	c.PublicURL = u.Scheme + "://" + u.Host
}

func isOrigin(u *url.URL) bool {
	return isWeb(u) && u.User == nil && (u.Path == "" || u.Path == "/") && u.RawQuery == "" && !u.ForceQuery && u.Fragment == ""
}

func isWeb(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.Opaque == ""
}

func (p *problems) checkDatabase(d *Database) {
	if d.URL.Reveal() == "" {
		return
	}
	u, err := url.Parse(d.URL.Reveal())
	p.check("MARKET_DATABASE_URL", err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql"))
}

func (p *problems) checkKeys(c *Config) {
	p.checkKey("MARKET_TREASURY_", c.Treasury, c.Dev)
	// Where no facilitator could be read it is not known that none is local.
	if c.SettlesItself() || len(c.Facilitators) == 0 || c.Gas.given() {
		p.checkKey("MARKET_GAS_", c.Gas, c.Dev)
	}
	const keystores, keys = "MARKET_TREASURY_RETIRED_KEYSTORES", "MARKET_TREASURY_RETIRED_KEYS"
	for _, k := range c.Retired.Keystores {
		p.checkFile(keystores, k.Keystore)
		p.checkFile(keystores, k.PasswordFile)
	}
	for _, key := range c.Retired.Bare() {
		if !c.Dev {
			p.say(keys, "bare keys are for development only; use %s", keystores)
		}
		p.check(keys, rawKeyForm.MatchString(key))
	}
}

// Bare returns the bare keys.
func (k RetiredKeys) Bare() []string {
	if k.Keys.Reveal() == "" {
		return nil
	}
	return strings.Split(k.Keys.Reveal(), ",")
}

func (k Key) given() bool { return k.Keystore != "" || k.PasswordFile != "" || k.Raw.Reveal() != "" }

var rawKeyForm = regexp.MustCompile(`^(0x)?[0-9a-fA-F]{64}$`)

// checkKey wants one source for a key. Where two are given, nobody can tell which one was meant to hold the money.
func (p *problems) checkKey(prefix string, k Key, dev bool) {
	store, password, raw := prefix+"KEYSTORE", prefix+"KEYSTORE_PASSWORD_FILE", prefix+"KEY"
	if key := k.Raw.Reveal(); key != "" {
		switch {
		case !dev:
			p.say(raw, "bare keys are for development only; use %s and %s", store, password)
		case !rawKeyForm.MatchString(key):
			p.wrong(raw)
		case k.Keystore != "" || k.PasswordFile != "":
			p.say(raw, "set beside %s: one of the two", store)
		}
		return
	}
	p.checkFile(store, k.Keystore)
	p.checkFile(password, k.PasswordFile)
}

// checkFile finds a missing file now and not when it is needed.
func (p *problems) checkFile(name, path string) {
	info, err := os.Stat(path)
	p.check(name, err == nil && info.Mode().IsRegular())
}

func (p *problems) checkRanges(c *Config) {
	durations := map[string]struct{ got, least, most time.Duration }{
		"MARKET_QUOTE_VALIDITY":   {c.QuoteValidity, 0, 24 * time.Hour},
		"MARKET_STRIKE_WINDOW":    {c.StrikeWindow, time.Second, 8760 * time.Hour},
		"MARKET_GRACE":            {c.Grace, 0, time.Hour},
		"MARKET_ANSWER_RETENTION": {c.Retention, time.Minute, 720 * time.Hour},
		"MARKET_COOLDOWN":         {c.Cooldown, time.Millisecond, 24 * time.Hour},
		"MARKET_PROBE_TTL":        {c.ProbeTTL, time.Millisecond, 10 * time.Minute},
	}
	for name, d := range durations {
		p.check(name, d.least <= d.got && d.got <= d.most)
	}
	p.check("MARKET_STRIKE_LIMIT", 1 <= c.StrikeLimit && c.StrikeLimit <= 100)
	p.check("MARKET_STRIKE_SOURCES", 1 <= c.StrikeSources && c.StrikeSources <= 100)
	p.check("MARKET_FEE_BPS", 0 <= c.FeeBPS && c.FeeBPS <= 10_000)
	if c.SecretsKeyFile != "" || !c.Dev {
		p.checkFile("MARKET_SECRETS_KEY_FILE", c.SecretsKeyFile)
	}
	p.check("MARKET_RESTORED_AT", c.Dev || !c.RestoredAt.After(time.Now())) // a development chain runs ahead of the clock
	token := c.AdminToken.Reveal()
	p.check("MARKET_ADMIN_TOKEN", token == "" || c.Dev || len(token) >= tokenCharsMin)
}
