package kubelet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// A history is made before it is played and does not depend on any answer, so that steps can be left
// out to shorten it.
type step struct {
	what       string // one of the constants below
	after      time.Duration
	image, ref string
	// decide
	secrets  []kubeletconfig.ImagePullSecret
	account  *kubeletconfig.ImagePullServiceAccount
	fetchErr bool
	// pulled
	credentials *kubeletconfig.ImagePullCredentials
	// failed
	cancelled bool
	// What the runtime lists at this step.
	onNode []kubecontainer.Image
	// prune, restart
	listed     []string
	untilAgo   time.Duration
	noList     bool
	policy     kubeletconfig.ImagePullCredentialsVerificationPolicy
	allowlist  []string
	writeTo    *kubeletconfig.ImagePulledRecord
	timeBefore time.Duration // of a written record; negative: none
}

const (
	decide       = "decide"
	intent       = "intent"
	pulled       = "pulled"
	failed       = "failed"
	prune        = "prune"
	restart      = "restart"
	writeRecord  = "writeRecord"
	deleteRecord = "deleteRecord"
	writeIntent  = "writeIntent"
	deleteIntent = "deleteIntent"
)

func (s step) String() string {
	text := fmt.Sprintf("%-12s +%v", s.what, s.after)
	if s.image != "" || s.ref != "" {
		text += fmt.Sprintf(" image %q ref %q", s.image, s.ref)
	}
	switch s.what {
	case decide:
		text += fmt.Sprintf(" secrets %v account %v fetch fails %t", s.secrets, s.account, s.fetchErr)
	case pulled:
		text += fmt.Sprintf(" credentials %+v", s.credentials)
	case failed:
		text += fmt.Sprintf(" cancelled %t", s.cancelled)
	case prune:
		text += fmt.Sprintf(" listed %q until %v ago", s.listed, s.untilAgo)
	case restart:
		text += fmt.Sprintf(" %s %q, list fails %t", s.policy, s.allowlist, s.noList)
	case writeRecord:
		text += fmt.Sprintf(" %d entries, %v before", len(s.writeTo.CredentialMapping), s.timeBefore)
		for name, credentials := range s.writeTo.CredentialMapping {
			text += fmt.Sprintf(" %s: node-wide %t, %d secrets, %d accounts", name, credentials.NodePodsAccessible,
				len(credentials.KubernetesSecrets), len(credentials.KubernetesServiceAccounts))
		}
	}
	text += "; on node"
	for _, image := range s.onNode {
		text += fmt.Sprintf(" %q%q%q", image.ID, image.RepoTags, image.RepoDigests)
	}
	return text
}

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	digestC = "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
)

var (
	judgedNames = []string{
		"nginx", "docker.io/library/nginx", "library/nginx", "index.docker.io/library/nginx",
		"registry.example/team/app", "registry.example:5000/team/app", "localhost/tool", "team/app",
	}
	judgedTails = []string{"", ":latest", ":1.27", "@" + digestA, "@" + digestB, ":1.27@" + digestA}
	// Do not parse, or parse as something unexpected.
	judgedOddities = []string{
		"", " nginx", "Nginx", "nginx:", "nginx@sha256:abc", "registry.example/Team/app:1", "nginx:1.27:2",
		"nginx@" + digestA + ":1.27", strings.Repeat("c", 64), "http://registry.example/app", "a//b",
		"nginx:" + strings.Repeat("t", 129), strings.Repeat("n", 256), "é/app", "nginx\x00", "<b>&\u2028",
	}
	judgedPolicies = []kubeletconfig.ImagePullCredentialsVerificationPolicy{
		kubeletconfig.NeverVerify, kubeletconfig.NeverVerifyPreloadedImages,
		kubeletconfig.NeverVerifyAllowlistedImages, kubeletconfig.AlwaysVerify,
	}
	judgedAllowlists = [][]string{
		nil, {"nginx"}, {"registry.example/*", "docker.io/library/nginx"}, {"registry.example/team/*", "team/app"},
	}
)

type historyMaker struct {
	r *rand.Rand
	// The images that this history is about: few, so that its steps meet.
	images []string
	refs   []string
	node   map[string][]string // what the runtime has: ref to image strings
	late   []string            // images that pulls will bring whose end nobody knows
	begun  []string            // pulls in flight, an image for each
	// Images whose intent may be on disk, of pulls in flight and of earlier processes.
	dangling []string
	counted  map[string]bool // a pull of it began in this life
	known    [][2]string     // image and image ref of records that may have credentials
	steps    []step
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func (h *historyMaker) image() string { return pick(h.r, h.images) }
func (h *historyMaker) ref() string   { return pick(h.r, h.refs) }

func (h *historyMaker) secret() kubeletconfig.ImagePullSecret {
	// Three coordinates and three hashes in every combination: rotated, renamed, equal.
	owner := h.r.IntN(3)
	if h.r.IntN(10) == 0 {
		owner = h.r.IntN(120)
	}
	secret := kubeletconfig.ImagePullSecret{
		UID:            fmt.Sprintf("%08d-0000-4000-8000-000000000000", owner),
		Namespace:      fmt.Sprintf("namespace-%d", owner%3),
		Name:           "pull-secret",
		CredentialHash: strings.Repeat(string(rune('a'+h.r.IntN(3))), 64),
	}
	switch h.r.IntN(16) {
	case 0:
		secret.CredentialHash = ""
	case 1:
		secret.CredentialHash = "opaque"
	case 2:
		secret.UID = "not a uuid"
	case 3:
		secret.UID, secret.Name = "", ""
	}
	return secret
}

func (h *historyMaker) account() kubeletconfig.ImagePullServiceAccount {
	return kubeletconfig.ImagePullServiceAccount{
		UID:       fmt.Sprintf("%08d-1111-4000-8000-000000000000", h.r.IntN(3)),
		Namespace: fmt.Sprintf("namespace-%d", h.r.IntN(2)), Name: "builder",
	}
}

func (h *historyMaker) credentials() *kubeletconfig.ImagePullCredentials {
	switch n := h.r.IntN(20); {
	case n < 10:
		return &kubeletconfig.ImagePullCredentials{KubernetesSecrets: []kubeletconfig.ImagePullSecret{h.secret()}}
	case n < 13:
		return &kubeletconfig.ImagePullCredentials{KubernetesServiceAccounts: []kubeletconfig.ImagePullServiceAccount{h.account()}}
	case n < 14:
		return &kubeletconfig.ImagePullCredentials{NodePodsAccessible: true}
	case n < 15:
		return &kubeletconfig.ImagePullCredentials{}
	case n < 16:
		return nil
	default:
		both := &kubeletconfig.ImagePullCredentials{}
		for range 1 + h.r.IntN(3) {
			both.KubernetesSecrets = append(both.KubernetesSecrets, h.secret())
		}
		for range h.r.IntN(3) {
			both.KubernetesServiceAccounts = append(both.KubernetesServiceAccounts, h.account())
		}
		return both
	}
}

// manySecrets returns about as many secrets as a decision writes back at most.
func (h *historyMaker) manySecrets() []kubeletconfig.ImagePullSecret {
	secrets := make([]kubeletconfig.ImagePullSecret, 96+h.r.IntN(6))
	for i := range secrets {
		secrets[i] = kubeletconfig.ImagePullSecret{
			UID: fmt.Sprintf("%08d-0000-4000-8000-000000000000", i), Namespace: fmt.Sprintf("namespace-%d", i%3),
			Name: "pull-secret", CredentialHash: strings.Repeat(string(rune('a'+i%2)), 64),
		}
	}
	return secrets
}

func (h *historyMaker) record() *kubeletconfig.ImagePulledRecord {
	record := &kubeletconfig.ImagePulledRecord{ImageRef: h.ref(), CredentialMapping: map[string]kubeletconfig.ImagePullCredentials{}}
	for range h.r.IntN(3) {
		credentials := h.credentials()
		if credentials == nil {
			credentials = &kubeletconfig.ImagePullCredentials{}
		}
		if h.r.IntN(2) == 0 {
			credentials = &kubeletconfig.ImagePullCredentials{KubernetesSecrets: h.manySecrets()}
		}
		image := h.image()
		record.CredentialMapping[imageName(image)] = *credentials
		h.known = append(h.known, [2]string{image, record.ImageRef})
	}
	return record
}

// digestOf is what the runtime calls an image by its digest; "" if it does not.
func (h *historyMaker) digestOf(ref string) string {
	at := slices.Index(h.refs, ref)
	for _, name := range h.node[ref] {
		if repository := imageName(normalised(name)); repository != "" && at < 5 {
			return fmt.Sprintf("%s@sha256:%064d", repository, 100+at)
		}
	}
	return ""
}

// spelling is a ref of the image: its ID, or seldom its digest.
func (h *historyMaker) spelling(ref string) string {
	if digest := h.digestOf(ref); digest != "" && h.r.IntN(6) == 0 {
		return digest
	}
	return ref
}

// runtimeList is the runtime's list, with its own spelling of names or the pods'.
func (h *historyMaker) runtimeList() []kubecontainer.Image {
	var images []kubecontainer.Image
	for _, ref := range h.refs { // in a fixed order: the seed alone decides
		names, there := h.node[ref]
		if !there {
			continue
		}
		image := kubecontainer.Image{ID: ref}
		for _, name := range names {
			if h.r.IntN(3) == 0 {
				name = normalised(name)
			}
			if strings.Contains(name, "@") {
				image.RepoDigests = append(image.RepoDigests, name)
			} else {
				image.RepoTags = append(image.RepoTags, name)
			}
		}
		if len(h.dangling) > 0 && h.r.IntN(4) == 0 {
			image.RepoTags = append(image.RepoTags, pick(h.r, h.dangling))
		}
		if digest := h.digestOf(ref); digest != "" {
			image.RepoDigests = append(image.RepoDigests, digest)
		}
		images = append(images, image)
	}
	return images
}

func (h *historyMaker) add(s step) {
	switch h.r.IntN(4) { // many steps in one second, some in one moment
	case 0:
		s.after = time.Duration(h.r.IntN(1_500)) * time.Millisecond
	case 1:
		s.after = time.Duration(h.r.IntN(20)) * time.Second
	}
	if len(h.late) > 0 && h.r.IntN(4) == 0 {
		h.arrive(h.late[0])
		h.late = h.late[1:]
	}
	if s.onNode == nil {
		s.onNode = h.runtimeList()
	}
	h.steps = append(h.steps, s)
}

// isImageID says whether a ref is the ID by which a runtime lists its image.
func isImageID(ref string) bool {
	digest, err := hex.DecodeString(strings.TrimPrefix(ref, "sha256:"))
	return err == nil && len(digest) == sha256.Size
}

// arrive brings an image that nobody records, unless its ref is there. No runtime pulls by ID.
func (h *historyMaker) arrive(image string) {
	ref := h.ref()
	if _, there := h.node[ref]; !there && !isImageID(image) {
		h.node[ref] = []string{image}
	}
}

func (h *historyMaker) restart() {
	s := step{what: restart, policy: pick(h.r, judgedPolicies), onNode: h.runtimeList(), noList: h.r.IntN(10) == 0}
	if h.r.IntN(2) == 0 {
		s.policy = kubeletconfig.NeverVerifyPreloadedImages // the default: where losing a record opens
	}
	if s.policy == kubeletconfig.NeverVerifyAllowlistedImages {
		s.allowlist = pick(h.r, judgedAllowlists)
	}
	h.add(s)
	for _, image := range h.begun { // the runtime goes on with what the kubelet asked for
		if h.r.IntN(3) == 0 {
			h.late = append(h.late, image)
		}
	}
	h.begun, h.counted = nil, map[string]bool{}
}

// finish ends a pull. One that nobody announced brings nothing late.
func (h *historyMaker) finish(image string, announced bool) {
	if h.r.IntN(3) == 0 {
		s := step{what: failed, image: image, cancelled: h.r.IntN(4) == 0}
		switch {
		case !announced:
		case s.cancelled && h.r.IntN(2) == 0:
			h.late = append(h.late, image)
		case h.r.IntN(6) == 0: // reported as failed, but the image is there
			h.arrive(image)
		}
		h.add(s)
		return
	}
	ref := h.ref()
	if h.r.IntN(12) > 0 {
		h.node[ref] = append(h.node[ref], image)
	}
	s := step{what: pulled, image: image, ref: h.spelling(ref), credentials: h.credentials()}
	h.add(s)
	h.known = append(h.known, [2]string{image, s.ref})
}

func (h *historyMaker) prune() {
	for _, ref := range h.refs {
		if h.r.IntN(6) == 0 {
			delete(h.node, ref)
		}
	}
	s := step{what: prune, onNode: h.runtimeList(), untilAgo: time.Duration(h.r.IntN(8_000)-500) * time.Millisecond}
	for _, ref := range h.refs { // incomplete, and of a moment ago
		if _, there := h.node[ref]; there && h.r.IntN(3) > 0 || h.r.IntN(10) == 0 {
			s.listed = append(s.listed, ref)
		}
	}
	if h.r.IntN(8) == 0 {
		s.untilAgo = -time.Hour
	}
	h.add(s)
}

func makeHistory(seed uint64, length int) []step {
	h := &historyMaker{r: rand.New(rand.NewPCG(seed, 0)), node: map[string][]string{}}
	for range 5 {
		h.images = append(h.images, pick(h.r, judgedNames)+pick(h.r, judgedTails))
	}
	// Several spellings of one image, since the rules differ there.
	name := pick(h.r, judgedNames)
	h.images = append(h.images, name+pick(h.r, judgedTails), name+pick(h.r, judgedTails), pick(h.r, judgedOddities))
	for i := range 5 {
		h.refs = append(h.refs, fmt.Sprintf("sha256:%064d", i))
	}
	h.refs = append(h.refs, "docker.io/library/nginx@"+digestC, "odd ref \u2029 <&>")
	for range h.r.IntN(3) { // preloaded
		h.node[h.ref()] = []string{normalised(h.image())}
	}
	h.restart()
	for len(h.steps) < length {
		if ref := h.ref(); h.r.IntN(40) == 0 && h.node[ref] == nil { // loaded by hand
			h.node[ref] = []string{normalised(h.image())}
		}
		switch n := h.r.IntN(100); {
		case n < 50:
			s := step{what: decide, image: h.image(), ref: h.ref(), fetchErr: h.r.IntN(15) == 0}
			if len(h.known) > 0 && h.r.IntN(2) == 0 {
				known := h.known[max(0, len(h.known)-1-h.r.IntN(6))]
				s.image, s.ref = known[0], known[1]
			}
			if s.ref = h.spelling(s.ref); h.r.IntN(25) == 0 {
				s.ref = ""
			}
			for range []int{0, 1, 1, 1, 2, 3, 9}[h.r.IntN(7)] {
				s.secrets = append(s.secrets, h.secret())
			}
			if h.r.IntN(4) == 0 {
				account := h.account()
				s.account = &account
			}
			h.add(s)
		case n < 67:
			image := h.image()
			if len(h.begun) > 0 && h.r.IntN(4) == 0 {
				image = pick(h.r, h.begun) // a second pull of it in flight
			}
			h.add(step{what: intent, image: image})
			h.begun, h.dangling = append(h.begun, image), append(h.dangling, image)
			h.counted[image] = true
		case n < 84:
			if len(h.begun) == 0 || h.r.IntN(20) == 0 {
				h.finish(h.image(), false)
				continue
			}
			i := h.r.IntN(len(h.begun))
			image := h.begun[i]
			h.begun = slices.Delete(h.begun, i, i+1)
			h.finish(image, true)
		case n < 89:
			h.prune()
		case n < 92:
			h.restart()
		case n < 96:
			h.add(step{what: writeRecord, writeTo: h.record(), timeBefore: time.Duration(h.r.IntN(10_000)-1_000) * time.Millisecond})
		case n < 97:
			h.add(step{what: deleteRecord, ref: h.ref()})
		default:
			image := h.image()
			if h.counted[image] {
				continue // the kubelet's manager would know of the pull, but its file would be gone
			}
			what := pick(h.r, []string{writeIntent, deleteIntent})
			h.add(step{what: what, image: image})
			h.dangling = append(h.dangling, image)
		}
	}
	h.restart()
	return h.steps
}

func (s step) record(now time.Time) *kubeletconfig.ImagePulledRecord {
	record := s.writeTo.DeepCopy()
	if s.timeBefore >= 0 {
		record.LastUpdatedTime = metav1.Time{Time: now.Add(-s.timeBefore)}
	}
	return record
}
