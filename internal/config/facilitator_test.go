package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const remoteEntry = `{"name":"hosted","kind":"remote","url":"https://facilitator.example/x402/","token_file":"hosted.token","networks":["eip155:84532"],"proof":"receipt"}`

// remoteFile writes a facilitators file with the secrets that it may name beside it.
func remoteFile(t *testing.T, entries string) string {
	t.Helper()
	folder := t.TempDir()
	for name, file := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"facilitators.json": {`{"facilitators":[` + entries + `]}`, 0o644},
		"hosted.token":      {"hunter2\n", 0o600},
		"empty.token":       {"\n", 0o600},
		"two.token":         {"hunter2\nhunter3\n", 0o600},
		"long.token":        {strings.Repeat("hunter2", 3000), 0o600},
		"open.token":        {"hunter2\n", 0o644},
		"group.token":       {"hunter2\n", 0o640},
		"cdp.json":          {`{"id":"key-1","secret":"hunter2"}`, 0o600},
		"cdp-old.json":      {`{"name":"organizations/1/apiKeys/2","privateKey":"hunter2","principal":"x"}`, 0o600},
		"cdp-half.json":     {`{"id":"key-1"}`, 0o600},
		"cdp-no.json":       {`hunter2`, 0o600},
	} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(file.text), file.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, file.mode); err != nil { // whatever the umask says
			t.Fatal(err)
		}
	}
	return "MARKET_FACILITATORS=" + filepath.Join(folder, "facilitators.json")
}

func TestLoad_ReadsARemoteFacilitator(t *testing.T) {
	t.Parallel()
	c := load(t, append(production(t), remoteFile(t, remoteEntry)))
	if len(c.Facilitators) != 1 {
		t.Fatalf("facilitators %v", c.Facilitators)
	}
	f := c.Facilitators[0]
	if f.Name != "hosted" || f.Kind != KindRemote || f.URL != "https://facilitator.example/x402" || f.Token.Reveal() != "hunter2" || f.Proof != "receipt" {
		t.Errorf("facilitator %+v", f)
	}
	if shown := fmt.Sprintf("%v %+v %#v", f, f, f); strings.Contains(shown, "hunter2") {
		t.Errorf("it shows its token: %s", shown)
	}
	for file, id := range map[string]string{"cdp.json": "key-1", "cdp-old.json": "organizations/1/apiKeys/2"} {
		entry := strings.Replace(remoteEntry, `"token_file":"hosted.token"`, `"cdp_key_file":"`+file+`"`, 1)
		f := load(t, append(production(t), remoteFile(t, entry))).Facilitators[0]
		if f.CDP.ID != id || f.CDP.Secret.Reveal() != "hunter2" || f.Token.Reveal() != "" {
			t.Errorf("%s: %+v", file, f)
		}
	}
}

func TestLoad_ARemoteFacilitatorIsStrict(t *testing.T) {
	t.Parallel()
	replace := func(old, with string) string { return strings.Replace(remoteEntry, old, with, 1) }
	member := func(text string) string { return replace(`"proof"`, text+`,"proof"`) }
	tests := map[string]struct{ entries, want string }{
		"as it should be":                    {remoteEntry, ""},
		"without a credential":               {replace(`"token_file":"hosted.token",`, ""), ""},
		"a token that a group may read":      {replace("hosted.token", "group.token"), ""},
		"no URL":                             {replace("https://facilitator.example/x402/", ""), "facilitators[0].url"},
		"an http URL":                        {replace("https://", "http://"), "facilitators[0].url"},
		"a user in the URL":                  {replace("https://", "https://me:hunter2@"), "facilitators[0].url"},
		"a query in the URL":                 {replace("/x402/", "/x402?key=hunter2"), "facilitators[0].url"},
		"a token that is not there":          {replace("hosted.token", "nowhere"), "facilitators[0].token_file"},
		"a token that is a folder":           {replace("hosted.token", "."), "facilitators[0].token_file"},
		"an empty token":                     {replace("hosted.token", "empty.token"), "facilitators[0].token_file"},
		"two tokens":                         {replace("hosted.token", "two.token"), "facilitators[0].token_file"},
		"a token that is too long":           {replace("hosted.token", "long.token"), "facilitators[0].token_file"},
		"a token that everybody may read":    {replace("hosted.token", "open.token"), "chmod 600"},
		"two credentials":                    {member(`"cdp_key_file":"cdp.json"`), "facilitators[0].cdp_key_file: set beside token_file"},
		"half a key":                         {replace(`"token_file":"hosted.token"`, `"cdp_key_file":"cdp-half.json"`), "facilitators[0].cdp_key_file"},
		"a key that is no JSON":              {replace(`"token_file":"hosted.token"`, `"cdp_key_file":"cdp-no.json"`), "facilitators[0].cdp_key_file"},
		"a local one with proof later":       {`{"name":"own","kind":"local","networks":["eip155:84532"],"proof":"later"}`, "facilitators[0].proof"},
		"another proof":                      {replace(`"receipt"`, `"word"`), "facilitators[0].proof"},
		"a local one with a URL":             {replace(`"remote"`, `"local"`), "facilitators[0].kind"},
		"two local ones on one network":      {`{"name":"a","kind":"local","networks":["eip155:84532"],"proof":"receipt"},{"name":"b","kind":"local","networks":["eip155:84532"],"proof":"receipt"}`, "facilitators[1].networks[0]"},
		"two remote ones and one of our own": {remoteEntry + "," + strings.Replace(remoteEntry, "hosted", "other", 1) + `,{"name":"b","kind":"local","networks":["eip155:84532"],"proof":"receipt"}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(append(production(t), remoteFile(t, tt.entries)))
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "MARKET_FACILITATORS: ") || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want one line that says %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v repeats a secret", err)
			}
		})
	}
	if _, err := Load(append(development(t), remoteFile(t, replace("https://", "http://")))); err != nil {
		t.Errorf("http in development: %v", err)
	}
}

// Whoever settles nothing itself sends no transaction, so it needs no key that pays for gas.
func TestLoad_AGasKeyIsNeededWhereWeSettleOurselves(t *testing.T) {
	t.Parallel()
	const local = `{"name":"own","kind":"local","networks":["eip155:84532"],"proof":"receipt"}`
	none := []string{"MARKET_GAS_KEYSTORE=", "MARKET_GAS_KEYSTORE_PASSWORD_FILE="}
	for name, tt := range map[string]struct {
		env  []string
		good bool
	}{
		"others settle":                    {append(none, remoteFile(t, remoteEntry)), true},
		"we settle":                        {append(none, remoteFile(t, local)), false},
		"others settle, and we after them": {append(none, remoteFile(t, remoteEntry+","+local)), false},
		"no file, so we settle":            {none, false},
		"others settle, and half a key":    {[]string{"MARKET_GAS_KEYSTORE=", remoteFile(t, remoteEntry)}, false},
	} {
		_, err := Load(append(production(t), tt.env...))
		if (err == nil) != tt.good || err != nil && !strings.HasPrefix(err.Error(), "MARKET_GAS_KEYSTORE: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
