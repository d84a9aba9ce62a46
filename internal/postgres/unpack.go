package postgres

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/xi2/xz"
)

// Limits of an archive's contents.
const (
	unpackedBytesMax = 1 << 30
	entriesMax       = 50_000
)

// ErrArchive is an archive that is broken or wants more than to lay files into its own folder.
var ErrArchive = errors.New("archive is not acceptable")

// unpackJar unpacks the one .txz inside a jar into a folder.
func unpackJar(jar []byte, dir string) error {
	archive, err := zip.NewReader(bytes.NewReader(jar), int64(len(jar)))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrArchive, err)
	}
	for _, file := range archive.File {
		if !strings.HasSuffix(file.Name, ".txz") {
			continue
		}
		content, err := file.Open()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrArchive, err)
		}
		defer content.Close()
		return unpackTarXZ(content, dir)
	}
	return fmt.Errorf("%w: no .txz in it", ErrArchive)
}

func unpackTarXZ(content io.Reader, dir string) error {
	plain, err := xz.NewReader(content, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrArchive, err)
	}
	// A root opened this way refuses whatever leads out of it, through symbolic links too.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	limited := &io.LimitedReader{R: plain, N: unpackedBytesMax}
	entries := tar.NewReader(limited)
	for range entriesMax {
		header, err := entries.Next()
		if limited.N <= 0 {
			return fmt.Errorf("%w: more than %d bytes", ErrArchive, unpackedBytesMax)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrArchive, err)
		}
		if err := unpackEntry(root, header, entries); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: more than %d entries", ErrArchive, entriesMax)
}

// unpackEntry makes one folder, file or link. Everything is readable by all and writable by us, whatever the archive and our umask say:
// another account runs it.
func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	name := path.Clean(header.Name)
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%w: entry %q leads out of it", ErrArchive, header.Name)
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return makeDirs(root, name)
	case tar.TypeReg:
		if err := makeDirs(root, path.Dir(name)); err != nil {
			return err
		}
		return writeEntry(root, name, header.FileInfo().Mode(), content)
	case tar.TypeSymlink:
		if !filepath.IsLocal(path.Join(path.Dir(name), header.Linkname)) || path.IsAbs(header.Linkname) {
			return fmt.Errorf("%w: link %q leads out of it", ErrArchive, header.Name)
		}
		if err := makeDirs(root, path.Dir(name)); err != nil {
			return err
		}
		return root.Symlink(header.Linkname, name)
	}
	return fmt.Errorf("%w: entry %q is of an unexpected kind", ErrArchive, header.Name)
}

func makeDirs(root *os.Root, name string) error {
	if err := root.MkdirAll(name, 0o755); err != nil {
		return fmt.Errorf("%w: %w", ErrArchive, err)
	}
	for ; name != "."; name = path.Dir(name) {
		if err := root.Chmod(name, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func writeEntry(root *os.Root, name string, mode fs.FileMode, content io.Reader) error {
	perm := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	// A process that another goroutine forks meanwhile would hold the file open for writing, and what is open for writing cannot be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrArchive, err)
	}
	_, err = io.Copy(file, content)
	if err := errors.Join(err, file.Chmod(perm), file.Close()); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrArchive, name, err)
	}
	return nil
}
