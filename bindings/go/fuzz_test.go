package waybill_test

import (
	"encoding/binary"
	"math"
	"reflect"
	"testing"
	"time"

	"waybill.dev/go"
)

// feed cuts values out of a fuzzer's bytes.
type feed struct{ data []byte }

func (f *feed) number(below int) int {
	if len(f.data) == 0 {
		return 0
	}
	n := int(f.data[0])
	f.data = f.data[1:]
	return n % below
}

func (f *feed) text() string {
	n := f.number(256)
	if n == 255 { // now and then a long one
		n = 5000
	}
	if n >= len(f.data) {
		n = len(f.data)
	}
	s := string(f.data[:n])
	f.data = f.data[n:]
	return s
}

func (f *feed) secrets(most int) []waybill.ImagePullSecret {
	var secrets []waybill.ImagePullSecret
	for range f.number(most + 1) {
		secrets = append(secrets, waybill.ImagePullSecret{UID: f.text(), Namespace: f.text(), Name: f.text(), CredentialHash: f.text()})
	}
	return secrets
}

// FuzzDecision passes strings of any length and bytes in all three ways of passing secrets, and
// compares the answer with a simple model of one record.
func FuzzDecision(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("\x01\x03uid\x02ns\x04name\x04hash"))
	f.Add([]byte("\x09\xff\x00\xff\x00\x00\x00\x05abcde\x80"))
	f.Add(binary.LittleEndian.AppendUint64([]byte("\x10"), math.MaxUint64))
	s := newStore(f)
	pull(f, s, image, ref, waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
	f.Fuzz(func(t *testing.T, data []byte) {
		in := feed{data}
		credentials := withSecrets(in.secrets(12)...)
		if in.number(2) == 1 {
			credentials.ServiceAccount = &waybill.ImagePullServiceAccount{UID: in.text(), Namespace: in.text(), Name: in.text()}
		}
		if d := s.MustAttemptPull(waybill.ImageCopy{Image: image, ImageRef: ref}, credentials); d.Reason != waybill.ReasonNoCredentialMatches || !d.CredentialsRead {
			t.Fatalf("a stranger: %+v", d)
		}
		// The tenant's own secret opens the image at any position among others.
		at := in.number(len(credentials.Secrets) + 1)
		own := append(append(append([]waybill.ImagePullSecret{}, credentials.Secrets[:at]...), secret), credentials.Secrets[at:]...)
		credentials.Secrets = own
		if d := s.MustAttemptPull(waybill.ImageCopy{Image: image, ImageRef: ref}, credentials); d.Pull() {
			t.Fatalf("the tenant, secret %d of %d: %+v", at, len(own), d)
		}
		lazily, err := s.MustAttemptPullLazily(waybill.ImageCopy{Image: image, ImageRef: ref}, func() (waybill.PodCredentials, error) { return credentials, nil })
		if lazily.Pull() || err != nil {
			t.Fatalf("lazily: %+v, %v", lazily, err)
		}
		// Any image, ref and handler without a record: no credentials are read.
		if d := s.MustAttemptPull(waybill.ImageCopy{Image: in.text(), ImageRef: "x" + in.text(), RuntimeHandler: in.text()}, credentials); d.CredentialsRead {
			t.Fatalf("elsewhere: %+v", d)
		}
	})
}

// FuzzRecord puts a record of any content and compares what comes back.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("\x03ref\x02\x04name\x01\x02\x03uid\x02ns\x04name\x04hash"))
	s := newStore(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		in := feed{data}
		r := waybill.ImagePulledRecord{ImageRef: in.text(), ManifestDigest: in.text()}
		if n := in.number(200); n > 0 {
			r.LastUpdatedTime = time.Unix(int64(n)*1e7, int64(n)).UTC()
		}
		if in.number(4) == 3 {
			r.Platform = &waybill.Platform{OS: in.text(), Architecture: in.text(), Variant: in.text()}
		}
		for range in.number(4) {
			if r.CredentialMapping == nil {
				r.CredentialMapping = map[string]waybill.ImagePullCredentials{}
			}
			c := waybill.ImagePullCredentials{NodePodsAccessible: in.number(2) == 1, KubernetesSecrets: in.secrets(3)}
			for range in.number(3) {
				c.KubernetesServiceAccounts = append(c.KubernetesServiceAccounts, waybill.ImagePullServiceAccount{UID: in.text(), Namespace: in.text(), Name: in.text()})
			}
			r.CredentialMapping[in.text()] = c
		}
		if err := s.PutRecord(r); err != nil {
			return // beyond a bound
		}
		got, err := s.GetRecord(waybill.ImageCopy{ImageRef: r.ImageRef})
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		got.Stamp, got.Proofs = 0, nil
		if !reflect.DeepEqual(got, r) {
			t.Fatalf("put\n%+v\ngot\n%+v", r, got)
		}
		text, err := waybill.EncodePulledRecord(r, waybill.KubeletV1Beta1)
		if err != nil {
			return
		}
		if _, err := waybill.DecodePulledRecord(text); err != nil {
			t.Logf("%q: %v", text, err) // such as bytes that are no UTF-8
		}
		must(t, s.DeleteRecord(waybill.ImageCopy{ImageRef: r.ImageRef}))
	})
}

// FuzzImage cuts image strings of any bytes into their parts, and reads any bytes as JSON.
func FuzzImage(f *testing.F) {
	for _, s := range []string{"", image, "a@sha256:0", "\xff\x00", "[::1]:5000/a/b:c", `{"images":[]}`, `{"items":[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := string(data)
		if parts, ok := waybill.ParseImage(s); ok {
			again := parts.Name
			if parts.Tag != "" {
				again += ":" + parts.Tag
			}
			if parts.Digest != "" {
				again += "@" + parts.Digest
			}
			if again != s || parts.Domain != "" && parts.Domain+"/"+parts.Path != parts.Name {
				t.Fatalf("%q: %+v", s, parts)
			}
			if full, err := waybill.NormaliseImage(s); err == nil {
				if twice, err := waybill.NormaliseImage(full); err != nil || twice != full {
					t.Fatalf("%q: %q, then %q, %v", s, full, twice, err)
				}
			}
		} else if parts != (waybill.ImageParts{}) {
			t.Fatalf("%q: %+v", s, parts)
		}
		if _, err := waybill.RepositoryOf(s); err != nil {
			t.Fatal(err)
		}
		_, _ = waybill.ParsePlatform(s)
		_, _ = waybill.ParseTimestamp(s)
		_, _ = waybill.DecodePulledRecord(data)
		_, _ = waybill.DecodePullIntent(data)
		_, _ = waybill.DecodePreloadedRecord(data)
		_, _ = waybill.DecodeImageList(data)
		_, _ = waybill.DecodePodList(data)
		_, _ = waybill.DecodeRuntimeStatus(data)
		_, _ = waybill.DecodeAuthDocument(data)
		_, _ = waybill.DecodeImageIndex(data)
	})
}
