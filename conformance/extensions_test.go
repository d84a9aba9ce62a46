package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/siwx"
)

// extend runs one step of the official extensions.
func extend(t *testing.T, key, step string, input, output any) {
	t.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	node := exec.CommandContext(t.Context(), "node", "extend.mjs", step)
	node.Env = append(os.Environ(), "MARKET_CALLER_KEY=0x"+key)
	node.Stdin, node.Stdout, node.Stderr = bytes.NewReader(data), &stdout, &stderr
	if err := node.Run(); err != nil {
		t.Fatalf("node extend.mjs %s: %v\n%s", step, err, stderr.Bytes())
	}
	if err := json.Unmarshal(stdout.Bytes(), output); err != nil {
		t.Fatalf("%v: %s", err, stdout.Bytes())
	}
}

func TestSignIn_OfTheOfficialClientHolds(t *testing.T) {
	t.Parallel()
	text, key := apptest.NewKey(t)
	now := time.Now()
	who := siwx.Expect{Domain: "localhost:8402", Origin: "http://localhost:8402", ChainIDs: []uint64{84532}}
	for name, more := range map[string]map[string]any{
		"with nothing that may be left out": {},
		"with everything": {
			"statement": "Read my purchases", "expirationTime": now.Add(time.Minute).UTC().Format(time.RFC3339Nano),
			"notBefore": now.Add(-time.Minute).UTC().Format(time.RFC3339), "requestId": "r-1", "resources": []string{"http://localhost:8402/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info := map[string]any{
				"domain": who.Domain, "uri": who.Origin + "/v1/x", "version": "1", "chainId": "eip155:84532", "type": "eip191",
				"nonce": strings.Repeat("0f", 16), "issuedAt": now.UTC().Format("2006-01-02T15:04:05.000Z"),
			}
			for member, value := range more {
				info[member] = value
			}
			var got struct{ Header string }
			extend(t, text, "sign-in", map[string]any{"url": who.Origin + "/v1/x", "info": info}, &got)
			p, err := siwx.Verify(got.Header, who, now)
			if err != nil || p.Address != key.Address() {
				t.Errorf("Verify = %+v, %v, want %s", p, err, key.Address())
			}
		})
	}
}

// The official client puts its identifier into what we declare, finds it valid by our own schema, and we find it in the payment.
func TestIdentifier_OfTheOfficialClientIsTaken(t *testing.T) {
	t.Parallel()
	offer, err := payment.NewOffer(chain.Network{ID: "eip155:84532", ChainID: 84532},
		chain.Asset{Address: common.HexToAddress("0x036CbD53842c5426634e7929541eC2318f3dCF7e"), EIP712Name: "USDC", EIP712Version: "2"},
		money.FromUnits(12345), common.HexToAddress("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"), 120, 1)
	if err != nil {
		t.Fatal(err)
	}
	const resource = "https://shop.test/v1/echo"
	challenge, err := payment.NewChallenge(payment.Resource{URL: resource}, []payment.Offer{offer})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Extensions json.RawMessage
		ID         string
	}
	extend(t, "", "identify", map[string]any{"challenge": challenge.Header(payment.Unpaid)}, &got)

	required, err := payment.DecodeChallenge(challenge.Header(payment.Unpaid))
	if err != nil {
		t.Fatal(err)
	}
	header, err := payment.EncodePayload(required.Accepts[0], required.Resource,
		chain.Signed{Signature: chain.Signature{31: 1, 63: 1, 64: 27}})
	if err != nil {
		t.Fatal(err)
	}
	document, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		t.Fatal(err)
	}
	document = append([]byte(`{"extensions":`+string(got.Extensions)+`,`), document[1:]...)
	p, err := payment.Decode(base64.StdEncoding.EncodeToString(document))
	if err != nil || p.Identifier != got.ID || got.ID == "" {
		t.Fatalf("identifier = %q, %v, want %q", p.Identifier, err, got.ID)
	}
	if _, err := payment.Match(p, []payment.Offer{offer}, resource, payment.Extensions()); err != nil {
		t.Errorf("Match: %v", err)
	}
}
