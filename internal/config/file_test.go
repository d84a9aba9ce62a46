package config

import (
	"strings"
	"testing"
)

func TestLoad_ReadsTheNetworksFile(t *testing.T) {
	t.Parallel()
	c := load(t, production(t))
	if len(c.Networks) != 1 || len(c.Networks[0].Assets) != 1 {
		t.Fatalf("networks = %+v", c.Networks)
	}
	n, a := c.Networks[0], c.Networks[0].Assets[0]
	if n.ID != "eip155:84532" || n.ChainID != 84532 || n.V1Name != "base-sepolia" || n.RPC[0].URL != "http://127.0.0.1:8545" || n.Confirmations != 2 ||
		n.ServeAtDepth != 1 || n.Explorer != "https://sepolia.basescan.org" || n.FloorUSD.String() != "0.001" {
		t.Errorf("network = %+v", n)
	}
	if want := (Asset{"0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC", 6, "USDC", "2"}); a != want {
		t.Errorf("asset = %+v, want %+v", a, want)
	}
}

func TestLoad_ANetworksFileIsStrict(t *testing.T) {
	t.Parallel()
	network := strings.TrimSuffix(strings.TrimPrefix(networksText, `{"networks":[`), `]}`)
	replace := func(old, with string) string {
		t.Helper()
		if strings.Count(networksText, old) != 1 {
			t.Fatalf("%q is not there once", old)
		}
		return strings.Replace(networksText, old, with, 1)
	}
	tests := map[string]struct{ text, want string }{
		"an unknown member":            {replace(`"confirmations"`, `"confirmation"`), `unknown field "confirmation"`},
		"not JSON":                     {"networks:", "invalid character"},
		"something after it":           {networksText + "{}", "something follows"},
		"too large":                    {networksText + strings.Repeat(" ", fileBytesMax), "more than"},
		"no networks":                  {`{"networks":[]}`, "networks: got 0"},
		"another kind of chain":        {replace("eip155:84532", "solana:mainnet"), "networks[0].id"},
		"a leading zero":               {replace("eip155:84532", "eip155:084532"), "networks[0].id"},
		"a chain id beyond 64 bits":    {replace("eip155:84532", "eip155:18446744073709551616"), "networks[0].id"},
		"one network twice":            {`{"networks":[` + network + `,` + network + `]}`, "networks[1].id"},
		"a v1 name with a space":       {replace("base-sepolia", "base sepolia"), "networks[0].v1_name"},
		"no RPC":                       {replace(`["http://127.0.0.1:8545"]`, `[]`), "networks[0].rpc"},
		"an RPC that is no URL":        {replace("http://127.0.0.1:8545", "127.0.0.1:8545"), "networks[0].rpc[0]"},
		"no confirmations":             {replace(`"confirmations":2`, `"confirmations":0`), "networks[0].confirmations"},
		"too many confirmations":       {replace(`"confirmations":2`, `"confirmations":1001`), "networks[0].confirmations"},
		"serving at no depth":          {replace(`"serve_at_depth":1`, `"serve_at_depth":0`), "networks[0].serve_at_depth"},
		"serving deeper than final":    {replace(`"serve_at_depth":1`, `"serve_at_depth":3`), "networks[0].serve_at_depth"},
		"an explorer that is a script": {replace("https://sepolia.basescan.org", "javascript:alert(1)"), "networks[0].explorer"},
		"a floor that is a number":     {replace(`"0.001"`, `0.001`), "cannot unmarshal number"},
		"a floor with an exponent":     {replace(`"0.001"`, `"1e9999999"`), "networks[0].floor_usd"},
		"a negative floor":             {replace(`"0.001"`, `"-1"`), "networks[0].floor_usd"},
		"no assets":                    {networksText[:strings.Index(networksText, `[{"address"`)] + `[]}]}`, "networks[0].assets"},
		"a short address":              {replace("0x036CbD53842c5426634e7929541eC2318f3dCF7e", "0x036CbD"), "networks[0].assets[0].address"},
		"a forgotten decimals":         {replace(`"decimals":6,`, ``), "networks[0].assets[0].decimals"},
		"negative decimals":            {replace(`"decimals":6`, `"decimals":-1`), "networks[0].assets[0].decimals"},
		"too many decimals":            {replace(`"decimals":6`, `"decimals":37`), "networks[0].assets[0].decimals"},
		"a broken decimals":            {replace(`"decimals":6`, `"decimals":6.5`), "cannot unmarshal number"},
		"a symbol with a space":        {replace(`"symbol":"USDC"`, `"symbol":"US DC"`), "networks[0].assets[0].symbol"},
		"no token name":                {replace(`"eip712_name":"USDC"`, `"eip712_name":""`), "networks[0].assets[0].eip712_name"},
		"no token version":             {replace(`,"eip712_version":"2"`, ``), "networks[0].assets[0].eip712_version"},
		"an asset twice, in another case": {strings.Replace(networksText, `"assets":[`,
			`"assets":[{"address":"0x036cbd53842c5426634e7929541ec2318f3dcf7e","symbol":"USDC","decimals":6,"eip712_name":"USDC","eip712_version":"2"},`, 1),
			"networks[0].assets[1].address"},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := writeFile(t, "networks.json", c.text)
			_, err := Load(append(production(t), "MARKET_NETWORKS="+path))
			if err == nil {
				t.Fatal("accepted")
			}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "MARKET_NETWORKS: ") || !strings.Contains(line, path) {
					t.Errorf("line %q, want it to be about %s", line, path)
				}
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("err = %q, want one that says %q", err, c.want)
			}
		})
	}
}

func TestLoad_ABrokenRPCAddressIsNotRepeated(t *testing.T) {
	t.Parallel()
	text := strings.Replace(networksText, "http://127.0.0.1:8545", "htp://rpc.example/hunter2", 1)
	_, err := Load(append(production(t), "MARKET_NETWORKS="+writeFile(t, "networks.json", text)))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("err = %v, want one without the key in the address", err)
	}
}

func TestLoad_AFacilitatorsFileIsStrict(t *testing.T) {
	t.Parallel()
	const entry = `{"name":"own","kind":"local","networks":["eip155:84532"],"proof":"receipt"}`
	const good = `{"facilitators":[` + entry + `]}`
	tests := map[string]struct{ text, want string }{
		"as it should be":             {good, ""},
		"a kind that there is not":    {strings.Replace(good, `"local"`, `"hosted"`, 1), "facilitators[0].kind"},
		"a member that there is not":  {strings.Replace(good, `"proof"`, `"meter":true,"proof"`, 1), `unknown field "meter"`},
		"another proof":               {strings.Replace(good, `"receipt"`, `"word"`, 1), "facilitators[0].proof"},
		"no name":                     {strings.Replace(good, `"own"`, `""`, 1), "facilitators[0].name"},
		"a network that is not known": {strings.Replace(good, `"eip155:84532"`, `"eip155:84532","eip155:1"`, 1), "facilitators[0].networks[1]"},
		"none":                        {`{"facilitators":[]}`, "facilitators: got 0"},
		"a name twice":                {`{"facilitators":[` + entry + `,` + entry + `]}`, "facilitators[1].name"},
	}
	for name, c := range tests {
		_, err := Load(append(production(t), "MARKET_FACILITATORS="+writeFile(t, "facilitators.json", c.text)))
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "MARKET_FACILITATORS: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want one that says %q", name, err, c.want)
		}
	}
}

func TestLoad_EveryNetworkHasAFacilitator(t *testing.T) {
	t.Parallel()
	second := strings.NewReplacer("84532", "8453", "base-sepolia", "base").Replace(strings.TrimPrefix(networksText, `{"networks":[`))
	both := strings.TrimSuffix(networksText, `]}`) + "," + second
	networks := writeFile(t, "networks.json", both)
	const one = `{"facilitators":[{"name":"own","kind":"local","networks":["eip155:84532"],"proof":"receipt"}]}`
	_, err := Load(append(production(t), "MARKET_NETWORKS="+networks, "MARKET_FACILITATORS="+writeFile(t, "facilitators.json", one)))
	if err == nil || !strings.Contains(err.Error(), "no facilitator for network eip155:8453") {
		t.Errorf("err = %v, want one that names the network", err)
	}
	if c := load(t, append(production(t), "MARKET_NETWORKS="+networks)); len(c.Facilitators) != 1 || len(c.Facilitators[0].Networks) != 2 {
		t.Errorf("without a file: %+v, want one for both networks", c.Facilitators)
	}
}
