package waybill_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"waybill.dev/go"
)

// fixture reads a file of one JSON object a line.
func fixture[T any](t *testing.T, name string, each func(T)) {
	t.Helper()
	f, err := os.Open("../../tests/fixtures/" + name)
	if os.IsNotExist(err) {
		t.Skip("no fixtures: the package is outside its tree")
	}
	must(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var line T
		must(t, json.Unmarshal(lines.Bytes(), &line))
		each(line)
	}
	must(t, lines.Err())
}

// The image names and full forms of the kubelet's own library.
func TestImageNames(t *testing.T) {
	type line struct {
		Image            string
		Name, Normalised *string
	}
	fixture(t, "names.jsonl", func(l line) {
		parts, parses := waybill.ParseImage(l.Image)
		if parses != (l.Name != nil) || parses && parts.Name != *l.Name {
			t.Errorf("%q: %+v, %v", l.Image, parts, parses)
		}
		full, err := waybill.NormaliseImage(l.Image)
		if (err == nil) != (l.Normalised != nil) || err == nil && full != *l.Normalised {
			t.Errorf("%q: %q, %v", l.Image, full, err)
		}
	})
}

func TestImageParts(t *testing.T) {
	digest := "sha256:ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
	got, ok := waybill.ParseImage("localhost:5000/a/b:v1@" + digest)
	want := waybill.ImageParts{Name: "localhost:5000/a/b", Domain: "localhost:5000", Path: "a/b", Tag: "v1", Digest: digest}
	if !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for image, want := range map[string]string{"nginx:1.27": "docker.io/library/nginx", "\xff no image": "\xff no image"} {
		if got, err := waybill.RepositoryOf(image); got != want || err != nil {
			t.Errorf("%q: %q, %v", image, got, err)
		}
	}
}

func TestCredentialHashes(t *testing.T) {
	type line struct{ Username, Password, Email, Hash string } // the first three in hex
	text := func(s string) string {
		b, err := hex.DecodeString(s)
		must(t, err)
		return string(b)
	}
	fixture(t, "credential_hashes.jsonl", func(l line) {
		hash, err := waybill.HashCredentials(waybill.AuthConfig{Username: text(l.Username), Password: text(l.Password), Email: text(l.Email)})
		if hash != l.Hash || err != nil {
			t.Errorf("%+v: %s, %v", l, hash, err)
		}
	})
}

func TestPlatforms(t *testing.T) {
	p, err := waybill.ParsePlatform("linux/aarch64/v8")
	if want := (waybill.Platform{OS: "linux", Architecture: "arm64"}); err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = waybill.NormalisePlatform(waybill.Platform{OS: "macos", Architecture: "x86_64"})
	if err != nil || p.String() != "darwin/amd64" {
		t.Errorf("%+v, %v", p, err)
	}
	p = waybill.Platform{OS: "windows", Architecture: "amd64", OSVersion: "10.0.20348.1970", OSFeatures: []string{"win32k"}}
	if got := p.String(); got != "windows/amd64 10.0.20348.1970 (win32k)" {
		t.Error(got)
	}
}

func TestChooseManifest(t *testing.T) {
	index, err := waybill.DecodeImageIndex([]byte(`{"schemaVersion":2,
		"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[
		{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":11,
		 "digest":"sha256:0000000000000000000000000000000000000000000000000000000000000001",
		 "platform":{"os":"linux","architecture":"amd64"}},
		{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":22,
		 "digest":"sha256:0000000000000000000000000000000000000000000000000000000000000002",
		 "platform":{"os":"linux","architecture":"arm64"}}]}`))
	must(t, err)
	if len(index) != 2 || index[1].Size != 22 || index[1].Platform.Architecture != "arm64" {
		t.Fatalf("%+v", index)
	}
	amd64 := waybill.Platform{OS: "linux", Architecture: "amd64"}
	arm64 := waybill.Platform{OS: "linux", Architecture: "arm64"}
	m, err := waybill.ChooseManifest(index, amd64, nil)
	if err != nil || m.Size != 11 {
		t.Errorf("%+v, %v", m, err)
	}
	m, err = waybill.ChooseManifest(index, amd64, &arm64)
	if err != nil || m.Size != 22 {
		t.Errorf("%+v, %v", m, err)
	}
	wantCode(t, second(waybill.ChooseManifest(index, waybill.Platform{OS: "linux", Architecture: "s390x"}, nil)), waybill.ErrNotFound)
	wantCode(t, second(waybill.ChooseManifest(nil, amd64, nil)), waybill.ErrNotFound)
	wantCode(t, second(waybill.DecodeImageIndex(nil)), waybill.ErrInvalidArgument)
}
