package postgres

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// An entry of a test archive. The zero kind is a file that may be executed.
type entry struct {
	kind    byte
	name    string
	content string // of a link: where it leads
}

// jar packs entries as the repository does: a tar, inside xz, inside a zip.
func jar(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	file, err := archive.Create("postgres-" + "test.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(xzStored(tarball(t, entries))); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func tarball(t *testing.T, entries []entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o700}
		switch e.kind {
		case 0, tar.TypeReg:
			header.Typeflag, header.Size = tar.TypeReg, int64(len(e.content))
		case tar.TypeSymlink, tar.TypeLink:
			header.Linkname = e.content
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			if _, err := w.Write([]byte(e.content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// xzStored wraps data in the xz format without compressing it: there is a reader in Go and no writer.
func xzStored(data []byte) []byte {
	const chunkMax = 1 << 16
	le32 := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(b)) }
	pad := func(b []byte) []byte { return append(b, make([]byte, -len(b)&3)...) }

	flags := []byte{0x00, 0x01} // checked by CRC32
	out := append([]byte{0xFD, '7', 'z', 'X', 'Z', 0x00}, flags...)
	out = append(out, le32(flags)...)

	header := []byte{0x02 /* size */, 0x00, 0x21 /* LZMA2 */, 0x01, 0x16, 0x00, 0x00, 0x00}
	block := append(header, le32(header)...)
	control := byte(0x01) // stored, dictionary reset
	for rest := data; len(rest) > 0; control = 0x02 {
		n := min(len(rest), chunkMax)
		block = append(block, control, byte((n-1)>>8), byte(n-1))
		block = append(block, rest[:n]...)
		rest = rest[n:]
	}
	block = append(block, 0x00)
	unpadded := len(block) + crc32.Size
	block = append(pad(block), le32(data)...)
	out = append(out, block...)

	index := []byte{0x00, 0x01}
	index = binary.AppendUvarint(index, uint64(unpadded))
	index = binary.AppendUvarint(index, uint64(len(data)))
	index = pad(index)
	index = append(index, le32(index)...)
	out = append(out, index...)

	footer := binary.LittleEndian.AppendUint32(nil, uint32(len(index)/4-1))
	footer = append(footer, flags...)
	out = append(out, le32(footer)...)
	out = append(out, footer...)
	return append(out, 'Y', 'Z')
}
