package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

const (
	shopAddress = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
	zeroAddress = "0x0000000000000000000000000000000000000000"
)

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func keyText(name, hash, recipients string, perMinute int) string {
	return fmt.Sprintf(`{"name":%q,"sha256":%q,"recipients":%s,"per_minute":%d}`, name, hash, recipients, perMinute)
}

func keysText(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

// deskEnviron is the least that a facilitator needs in development.
func deskEnviron(t *testing.T, keys string) []string {
	t.Helper()
	return []string{
		"MARKET_DEV=1", "MARKET_NETWORKS=" + writeFile(t, "networks.json", networksText), "MARKET_GAS_KEY=" + rawKey,
		"MARKET_FACILITATOR_KEYS=" + writeFile(t, "keys.json", keys),
	}
}

func TestLoadDesk_ReadsKeysAndNetworks(t *testing.T) {
	t.Parallel()
	d, err := LoadDesk(deskEnviron(t, keysText(
		keyText("shop", hashOf("one"), `["`+shopAddress+`"]`, 600),
		keyText("all", strings.ToUpper(hashOf("two")), `["*"]`, 1),
	)))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Keys) != 2 || len(d.Networks) != 1 || d.Listen != "127.0.0.1:4021" || d.OpsListen != "127.0.0.1:4022" {
		t.Fatalf("desk = %+v", d)
	}
	shop, all := d.Keys[0], d.Keys[1]
	if shop.Name != "shop" || shop.SHA256 != sha256.Sum256([]byte("one")) || len(shop.Recipients) != 1 || shop.Recipients[0] != shopAddress || shop.Anybody || shop.PerMinute != 600 {
		t.Errorf("shop = %+v", shop)
	}
	if all.SHA256 != sha256.Sum256([]byte("two")) || !all.Anybody || len(all.Recipients) != 0 {
		t.Errorf("all = %+v", all)
	}
}

func TestLoadDesk_ReportsEveryWrongKeyTogether(t *testing.T) {
	t.Parallel()
	const secret = "the-token-itself-in-the-file"
	_, err := LoadDesk(deskEnviron(t, keysText(
		keyText("Shop", hashOf("one"), `["`+shopAddress+`"]`, 600),
		keyText("token", secret, `["`+shopAddress+`"]`, 600),
		keyText("twin", hashOf("one"), `["`+shopAddress+`","`+strings.ToLower(shopAddress)+`"]`, 600),
		keyText("empty", hashOf(""), `[]`, 0),
		keyText("mixed", hashOf("five"), `["*","`+shopAddress+`"]`, 600),
		keyText("nobody", hashOf("six"), `["`+zeroAddress+`"]`, 1_000_001),
		keyText("nobody", hashOf("seven"), `["*"]`, 1),
	)))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"keys[0].name", "keys[1].sha256", "keys[2].sha256", "keys[2].recipients[1]", "keys[3].sha256", "keys[3].recipients:", "keys[3].per_minute",
		"keys[4].recipients[0]", "keys[5].recipients[0]", "keys[5].per_minute", "keys[6].name",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no line about %s in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the report shows a token:\n%v", err)
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != 11 {
		t.Errorf("%d lines, want 11:\n%v", got, err)
	}
}

func TestLoadDesk_ReadsTheFileOfKeysStrictly(t *testing.T) {
	t.Parallel()
	good := keyText("shop", hashOf("one"), `["*"]`, 1)
	for name, text := range map[string]string{
		"no keys":           `{"keys":[]}`,
		"nothing":           ``,
		"an unknown member": keysText(strings.Replace(good, `"name"`, `"token":"x","name"`, 1)),
		"two documents":     keysText(good) + keysText(good),
		"a list":            `[` + good + `]`,
	} {
		if _, err := LoadDesk(deskEnviron(t, text)); err == nil || !strings.Contains(err.Error(), "MARKET_FACILITATOR_KEYS") {
			t.Errorf("%s: %v, want a line about the file", name, err)
		}
	}
}

// A treasury's key has no business in a program that moves other people's money.
func TestLoadDesk_RefusesWhatIsOfTheServer(t *testing.T) {
	t.Parallel()
	good := keysText(keyText("shop", hashOf("one"), `["*"]`, 1))
	for _, name := range []string{"MARKET_TREASURY_KEY", "MARKET_TREASURY_KEYSTORE", "MARKET_TREASURY_RETIRED_KEYS", "MARKET_FEE_BPS", "MARKET_PUBLIC_URL"} {
		_, err := LoadDesk(append(deskEnviron(t, good), name+"="+rawKey))
		if err == nil || !strings.Contains(err.Error(), name+": not used by `market facilitator`") || strings.Contains(err.Error(), rawKey) {
			t.Errorf("%s: %v, want a line that it is not used, without its value", name, err)
		}
	}
	if _, err := LoadDesk(append(deskEnviron(t, good), "MARKET_FACILITATER_KEYS=x")); err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("a misspelt variable: %v", err)
	}
	if _, err := Load(append(development(t), "MARKET_FACILITATOR_KEYS=x")); err == nil || !strings.Contains(err.Error(), "not used by `market serve`") {
		t.Errorf("the server with keys of the facilitator: %v", err)
	}
}

func TestLoadDesk_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := LoadDesk([]string{"MARKET_LISTEN=127.0.0.1:1", "MARKET_OPS_LISTEN=127.0.0.1:1"})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, name := range []string{"MARKET_OPS_LISTEN", "MARKET_NETWORKS", "MARKET_FACILITATOR_KEYS", "MARKET_GAS_KEYSTORE", "MARKET_GAS_KEYSTORE_PASSWORD_FILE"} {
		if !strings.Contains(err.Error(), name+": ") {
			t.Errorf("no line about %s in\n%v", name, err)
		}
	}
	if strings.Contains(err.Error(), "TREASURY") {
		t.Errorf("asks for a treasury:\n%v", err)
	}
}
