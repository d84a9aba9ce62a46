package siwx

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vectors were made with the official client, from the very members.
func vectors() map[string]struct {
	members   members
	text      string
	signature string
} {
	return map[string]struct {
		members   members
		text      string
		signature string
	}{
		"the example of the protocol": {
			bare().with("statement", "Read my purchases").with("expirationTime", "2026-11-29T12:05:00.000Z").
				with("resources", []string{"https://shop.test/v1/purchases"}),
			"shop.test wants you to sign in with your Ethereum account:\n0x70997970C51812dc3A010C7d01b50e0d17dc79C8\n\nRead my purchases\n\n" +
				"URI: https://shop.test/v1/purchases\nVersion: 1\nChain ID: 84532\nNonce: 0f1e2d3c4b5a69788796a5b4c3d2e1f0\n" +
				"Issued At: 2026-11-29T12:00:00.000Z\nExpiration Time: 2026-11-29T12:05:00.000Z\nResources:\n- https://shop.test/v1/purchases",
			"0xb63a9309e224fbedb683a9799e752798fb8861e326706c3fe1b4e604aed33fe11f225a5336c59cfed7c50ea0591c50bc9ece042dba9520d286810b0f677f13711c",
		},
		"nothing that may be left out": {
			bare(),
			"shop.test wants you to sign in with your Ethereum account:\n0x70997970C51812dc3A010C7d01b50e0d17dc79C8\n\n\n" +
				"URI: https://shop.test/v1/purchases\nVersion: 1\nChain ID: 84532\nNonce: 0f1e2d3c4b5a69788796a5b4c3d2e1f0\n" +
				"Issued At: 2026-11-29T12:00:00.000Z",
			"0x9a30e64f41634de7cf85b7e58fd9587bb2d2abb57f9c2e4d1922c69197afab494063bca441b301bb15dcc875b3d3e8e41d11d7bc91097d982e1633daa714e47c1c",
		},
		"everything": {
			bare().with("statement", "Read").with("expirationTime", "2026-11-29T12:05:00.000Z").with("notBefore", "2026-11-29T11:59:00.000Z").
				with("requestId", "r-1").with("resources", []string{"https://shop.test/a", "https://shop.test/b"}),
			"shop.test wants you to sign in with your Ethereum account:\n0x70997970C51812dc3A010C7d01b50e0d17dc79C8\n\nRead\n\n" +
				"URI: https://shop.test/v1/purchases\nVersion: 1\nChain ID: 84532\nNonce: 0f1e2d3c4b5a69788796a5b4c3d2e1f0\n" +
				"Issued At: 2026-11-29T12:00:00.000Z\nExpiration Time: 2026-11-29T12:05:00.000Z\nNot Before: 2026-11-29T11:59:00.000Z\n" +
				"Request ID: r-1\nResources:\n- https://shop.test/a\n- https://shop.test/b",
			"0x2f49e1c9b523e6cfbb38fca765d866ca36d47b42ae770bc64c53b5278195dd473a160618835c0e715082cfab6446f960e0c6b890523e4b802ea783fcc5e94fc71b",
		},
		"an empty request id and an empty list": {
			bare().with("requestId", "").with("resources", []string{}),
			"shop.test wants you to sign in with your Ethereum account:\n0x70997970C51812dc3A010C7d01b50e0d17dc79C8\n\n\n" +
				"URI: https://shop.test/v1/purchases\nVersion: 1\nChain ID: 84532\nNonce: 0f1e2d3c4b5a69788796a5b4c3d2e1f0\n" +
				"Issued At: 2026-11-29T12:00:00.000Z\nRequest ID: \nResources:",
			"0x139d4b28c957c01983162011945bc49e4d6bb2f6ab3b09dfbc692565bd90bab2278ca0e70c5fc5f680c27a93ceaa0372b0affd9c2e691be6c99c674ef98a524d1b",
		},
	}
}

func TestMessage_TextIsThatOfTheOfficialClient(t *testing.T) {
	t.Parallel()
	for name, v := range vectors() {
		m, _, err := read(v.members.with("signature", v.signature).header(t))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(v.text, m.Text()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestVerify_TakesWhatTheOfficialClientSigns(t *testing.T) {
	t.Parallel()
	for name, v := range vectors() {
		p, err := Verify(v.members.with("signature", v.signature).header(t), us, issued)
		if err != nil || p.Address.Hex() != goldenAddress || p.Nonce != "0f1e2d3c4b5a69788796a5b4c3d2e1f0" {
			t.Errorf("%s: Verify = %+v, %v", name, p, err)
		}
	}
}
