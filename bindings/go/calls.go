package waybill

// The calls of dev.waybill.varlink. R reads. W changes the store, and is on disk when it is answered. L needs
// no store. The zero value of a member that may be left out is its default.

import (
	"context"
	"time"
)

// R. Must this pull be attempted (KEP-2535)? Never fails: what can't be read, verified or understood
// is "pull".
type MustPull struct {
	Image          string          `json:"image"`              // as the pod wrote it
	ImageRef       string          `json:"imageRef,omitempty"` // what the runtime returned for it; empty: not on the node
	RuntimeHandler string          `json:"runtimeHandler,omitempty"`
	Secrets        []Secret        `json:"secrets,omitempty"` // the pod's imagePullSecrets that match the image
	ServiceAccount *ServiceAccount `json:"serviceAccount,omitzero"`
}

// R. The kubelet's outer question, with the container's imagePullPolicy: pull, use, or refuse.
type EnsureImage struct {
	PullPolicy     PullPolicy      `json:"pullPolicy"`
	Image          string          `json:"image"`
	ImageRef       string          `json:"imageRef,omitempty"`
	RuntimeHandler string          `json:"runtimeHandler,omitempty"`
	Secrets        []Secret        `json:"secrets,omitempty"`
	ServiceAccount *ServiceAccount `json:"serviceAccount,omitzero"`
}

type EnsureImageAnswer struct {
	Action   string        `json:"action"`  // "Pull", "UsePresent", "InvalidImageName", "ErrImageNeverPull"
	Message  string        `json:"message"` // what the pod may see
	Decision *PullDecision `json:"decision,omitzero"`
}

// R. Why is the image open or closed, for whom, and what would change that? With Secrets or a
// service account also what MustPull would answer; nothing is counted or written back.
type Explain struct {
	Image          string          `json:"image,omitempty"`
	ImageRef       string          `json:"imageRef"`
	RuntimeHandler string          `json:"runtimeHandler,omitempty"`
	Names          []string        `json:"names,omitempty"`  // that the runtime lists it by
	Secrets        []Secret        `json:"secrets,omitzero"` // empty: a pod without any; nil: it is not asked
	ServiceAccount *ServiceAccount `json:"serviceAccount,omitzero"`
	Policy         *Policy         `json:"policy,omitzero"` // another one than the store's: what it would give
}

type ExplainAnswer struct {
	Decision      *PullDecision         `json:"decision,omitzero"` // if credentials were given
	WhatIf        bool                  `json:"whatIf,omitempty"`  // by another policy than the store's
	Steps         []string              `json:"steps"`             // of the decision, that were passed before it asked for credentials
	Why           string                `json:"why"`               // what closes it, in one sentence; empty: nothing does
	Hint          string                `json:"hint"`              // what would open it
	Preloaded     *PreloadedImage       `json:"preloaded,omitzero"`
	Retained      *PreloadedImage       `json:"retained,omitzero"` // of an image that is gone: opens nothing
	Record        *PulledRecord         `json:"record,omitzero"`   // without credentials, which follow
	Credentials   []ExplainedCredential `json:"credentials"`
	ImageNames    []string              `json:"imageNames"` // of the record, also without credentials
	Unreadable    bool                  `json:"unreadable"` // the record, or one of the same image, can't be read
	Pulls         []UnresolvedPull      `json:"pulls"`      // that may have brought it; newest first
	Quarantined   []QuarantinedFile     `json:"quarantined"`
	Aliases       []string              `json:"aliases"`
	OtherHandlers []string              `json:"otherHandlers"` // that have a record of it; "": the default
	Degraded      bool                  `json:"degraded"`
}

// W. A pull begins: call it before each pull, and EndPull after it. The image need not parse.
type BeginPull struct {
	Image          string `json:"image"`
	RuntimeHandler string `json:"runtimeHandler,omitempty"`
	// stores the intent only if no pull of it runs, and does not count it as under way in this process,
	// as the kubelet's PullRecordsAccessor does
	UnlessRunning bool `json:"unlessRunning,omitempty"`
}

type BeginPullAnswer struct {
	Pull int64 `json:"pull"` // 0: of unlessRunning
}

// W. A pull ended. Pulled: the credentials are added to what is known of imageRef, and none means
// that they are not known: nobody gets in by them. Another process names the pull that it began;
// Conflict: the owner's own process began it.
type EndPull struct {
	Image                string       `json:"image"`
	ImageRef             string       `json:"imageRef,omitempty"` // what the runtime returned after the pull
	RuntimeHandler       string       `json:"runtimeHandler,omitempty"`
	Pull                 int64        `json:"pull,omitempty"` // 0: the newest of this string
	Outcome              PullOutcome  `json:"outcome"`
	Credentials          *PulledWith  `json:"credentials,omitzero"`
	VerifiedBy           VerifiedBy   `json:"verifiedBy,omitempty"`
	ValidUntil           time.Time    `json:"validUntil,omitzero"`            // of a token, its `exp`
	NodeHadNoCredentials bool         `json:"nodeHadNoCredentials,omitempty"` // neither the kubelet nor the runtime had one for that registry since before the pull began: only then may a pull without credentials take the place of Secrets that are, or were, on record
	ManifestDigest       string       `json:"manifestDigest,omitempty"`       // of an index, the one that was pulled
	Platform             *Platform    `json:"platform,omitzero"`
	Listed               *ListedImage `json:"listed,omitzero"` // the runtime's entry, for the image's aliases
	Error                string       `json:"error,omitempty"` // what the runtime said, or its kind: "auth", "notFound", "unavailable", "other"; for metrics alone
}

// R. The pulls that are not resolved, the oldest first.
type ListPulls struct {
	Image          *string `json:"image,omitempty"`          // left out: all
	RuntimeHandler string  `json:"runtimeHandler,omitempty"` // of image
}

type ListPullsAnswer struct {
	Pulls []UnresolvedPull `json:"pulls"`
}

// W. The caller's word that pulls brought nothing, and will bring nothing: one by its number, or all
// of an image string that do not run in this process. The reason goes into the history; only in mode
// kubelet may it be left out. InvalidArgument: neither is named. NotFound: there is no such pull.
// Conflict: it runs in this process.
type DropPulls struct {
	Pull           int64   `json:"pull,omitempty"`
	Image          *string `json:"image,omitempty"`
	RuntimeHandler string  `json:"runtimeHandler,omitempty"`
	Reason         string  `json:"reason,omitempty"`
	DryRun         bool    `json:"dryRun,omitempty"`
}

type DropPullsAnswer struct {
	Dropped int64 `json:"dropped"`
}

type BeginListAnswer struct {
	Token string `json:"token"`
}

// W. Tells the store what the runtime has. Images that nobody knows are classified once: open if no
// unresolved pull could have brought them, closed otherwise. What is known of images that a complete
// list lacks is retained for 30 days that the node runs, and counts again if the image comes back
// without a recorded pull. A list without a token closes, and does nothing else.
type ClassifyImages struct {
	Images      []ListedImage `json:"images"`
	Token       string        `json:"token,omitempty"`
	Complete    bool          `json:"complete"`             // everything that the runtime has
	Source      string        `json:"source,omitempty"`     // who made the list; empty: the runtime
	QuietUntil  string        `json:"quietUntil,omitempty"` // pulls that ended by then bring nothing more (a token's boot time)
	NamesToCome []string      `json:"namesToCome,omitempty"`
	AllowEmpty  bool          `json:"allowEmpty,omitempty"` // also: the list has none of the known images
	DryRun      bool          `json:"dryRun,omitempty"`
}

// R. What the store knows of images; of one, only its records.
type ListImages struct {
	ImageRef       string `json:"imageRef,omitempty"`       // any ID or digest of it; empty: all
	RuntimeHandler string `json:"runtimeHandler,omitempty"` // of imageRef
	Hashes         bool   `json:"hashes,omitempty"`         // with those of credentials; otherwise they are left out
}

type ListImagesAnswer struct {
	Records     []PulledRecord    `json:"records"`
	Preloaded   []PreloadedImage  `json:"preloaded"`
	Quarantined []QuarantinedFile `json:"quarantined"`
}

// W. An operator's word that every pod may use the image.
type AllowImage struct {
	Image           ListedImage `json:"image"`
	Source          string      `json:"source,omitempty"` // "operator", "preloaded-list", …
	Reason          string      `json:"reason"`
	OnlyUnconfirmed bool        `json:"onlyUnconfirmed,omitempty"` // otherwise nothing is changed
	PulledToo       bool        `json:"pulledToo,omitempty"`       // also one that was pulled with credentials, or nobody knows with what; else Conflict
	DryRun          bool        `json:"dryRun,omitempty"`
}

type AllowImageAnswer struct {
	Changed bool `json:"changed"`
}

// W. The contrary: it came by a pull, or nobody knows how. Only proofs open it from now on.
type DenyImage struct {
	ImageRef        string `json:"imageRef"`
	RuntimeHandler  string `json:"runtimeHandler,omitempty"`
	Reason          string `json:"reason"`
	OnlyUnconfirmed bool   `json:"onlyUnconfirmed,omitempty"`
	DryRun          bool   `json:"dryRun,omitempty"`
}

type DenyImageAnswer AllowImageAnswer

// W. Replaces the record of one image, as the kubelet's PullRecordsAccessor does. Proofs that are
// known keep their time; new ones are proven by the running pull of their image name.
type PutImage struct {
	Record               PulledRecord `json:"record"`
	VerifiedBy           VerifiedBy   `json:"verifiedBy,omitempty"`
	ValidUntil           time.Time    `json:"validUntil,omitzero"`
	NodeHadNoCredentials bool         `json:"nodeHadNoCredentials,omitempty"` // as of EndPull
}

// W. Deletes the record of one image, if there is one. Quarantine stays.
type DeleteImage struct {
	ImageRef       string `json:"imageRef"`
	RuntimeHandler string `json:"runtimeHandler,omitempty"`
}

// W. Deletes records of images that are not listed: those that were last updated before then, as the
// kubelet's PruneUnknownRecords does, or that are older than the token. Exactly one of the two. In
// mode strict ClassifyImages is the better call.
type PruneBefore struct {
	Images     []ListedImage `json:"images"`
	Before     time.Time     `json:"before,omitzero"`
	Token      string        `json:"token,omitempty"`
	AllowEmpty bool          `json:"allowEmpty,omitempty"`
	DryRun     bool          `json:"dryRun,omitempty"`
}

type PruneBeforeAnswer struct {
	Examined               int64 `json:"examined"`
	Deleted                int64 `json:"deleted"`
	KeptInList             int64 `json:"keptInList"`
	KeptNewer              int64 `json:"keptNewer"`
	KeptWithoutCredentials int64 `json:"keptWithoutCredentials"` // the last of its ref: lost its credentials
	PreloadedDeleted       int64 `json:"preloadedDeleted"`
}

// W. Credentials stop opening images, at once and for good: neither a pull that began before, nor an
// import, a restored backup or a rotated Secret brings them back. A later pull proves anew. Kept
// until the node ran for 30 days and every kubelet of then has ended, also if the store did not know
// them (images is 0 then).
type Revoke struct {
	Kind           RevocationKind `json:"kind"`
	Namespace      string         `json:"namespace,omitempty"`
	Name           string         `json:"name,omitempty"`
	UID            string         `json:"uid,omitempty"` // empty: whatever the UID
	ImageRef       string         `json:"imageRef,omitempty"`
	RuntimeHandler string         `json:"runtimeHandler,omitempty"`
	Hash           string         `json:"hash,omitempty"`
	DryRun         bool           `json:"dryRun,omitempty"`
}

// W. Revokes each credential that the list of existing Secrets and service accounts lacks, if it was
// proven by a pull that began before the token. The list is that of the whole cluster, made after
// the token was drawn; a name without a UID stands for each. A nil list is ErrInvalidArgument.
type RevokeMissing struct {
	Secrets         []CredentialName `json:"secrets"`
	ServiceAccounts []CredentialName `json:"serviceAccounts"`
	Token           string           `json:"token"`
	More            bool             `json:"more,omitempty"`        // another part follows with this token; nothing is revoked before the last
	PartsBefore     int64            `json:"partsBefore,omitempty"` // how many parts with this token came before
	AllowEmpty      bool             `json:"allowEmpty,omitempty"`
	DryRun          bool             `json:"dryRun,omitempty"`
}

type RevokeMissingAnswer struct {
	Known   int64        `json:"known"`
	Missing int64        `json:"missing"`
	Newer   int64        `json:"newer"` // missing, but proven after the token: they stay
	Revoked RevokeReport `json:"revoked"`
}

// R
type ListRevocations struct {
	Hashes bool `json:"hashes,omitempty"` // otherwise they are left out
}

type ListRevocationsAnswer struct {
	Revocations []Revocation `json:"revocations"`
}

type ListRuntimesAnswer struct {
	Handlers []RuntimeHandler `json:"handlers"` // none: they were never told
}

// W. Replaces the list of handlers. Images of a handler whose guest platform changed must be
// verified again. `off`: runtime classes are turned off, and all copies become the default's, to be
// verified again. Conflict: pulls that are under way use a handler that would change.
type SetRuntimes struct {
	Handlers   []RuntimeHandler `json:"handlers,omitzero"`
	Status     string           `json:"status,omitempty"` // instead of handlers: the text of `crictl info`
	Off        bool             `json:"off,omitempty"`
	AllowEmpty bool             `json:"allowEmpty,omitempty"`
	DryRun     bool             `json:"dryRun,omitempty"`
}

// W; R for a pod that has a mapping. The user namespace for the pod's sandbox and mounts: always the
// same, and on disk before it is returned. InvalidArgument: the handler can't do user namespaces, or
// the handlers were never told (SetRuntimes comes first). Conflict: user namespaces are off, or the
// pod, or pods of unknown ranges, are in quarantine. LimitExceeded: the pool is full.
type ClaimUserNamespace struct {
	PodUID         string `json:"podUid"`
	HostUsers      *bool  `json:"hostUsers,omitempty"` // pod.spec.hostUsers
	RuntimeHandler string `json:"runtimeHandler,omitempty"`
	Length         int64  `json:"length,omitempty"` // that is required; 0: any
}

type ClaimUserNamespaceAnswer struct {
	Mapping *IdMapping `json:"mapping,omitzero"` // of UIDs and of GIDs; none: the node's user namespace
}

// W. Releases the mapping of a pod that is gone; `lost`: the ranges of unknown pods, an operator's
// word that every live pod is listed.
type ReleaseUserNamespace struct {
	PodUID string `json:"podUid,omitempty"`
	Lost   bool   `json:"lost,omitempty"`
	DryRun bool   `json:"dryRun,omitempty"`
}

type ReleaseUserNamespaceAnswer struct {
	Released bool `json:"released"`
}

// W. An operator's word that a pod in quarantine lives with this range.
type AssignUserNamespace struct {
	PodUID string `json:"podUid"`
	HostID int64  `json:"hostId"`
	Length int64  `json:"length"`
}

// R
type ListUserNamespaces struct {
	PodUID string `json:"podUid,omitempty"` // empty: all
}

type ListUserNamespacesAnswer struct {
	Mappings    []PodMapping     `json:"mappings"`
	Quarantined []QuarantinedPod `json:"quarantined"`
	Use         PoolUse          `json:"use"`
}

// W. Releases the mappings of pods in neither list: those that the node should run, and those that
// the runtime runs, listed in this order after the token was drawn. A nil list is ErrInvalidArgument.
type CleanUpUserNamespaces struct {
	Existing   []string `json:"existing"`
	Running    []string `json:"running"`
	Token      string   `json:"token"`
	AllowEmpty bool     `json:"allowEmpty,omitempty"`
	DryRun     bool     `json:"dryRun,omitempty"`
}

type CleanUpUserNamespacesAnswer struct {
	Examined     int64    `json:"examined"` // pods
	Released     int64    `json:"released"`
	KeptInLists  int64    `json:"keptInLists"`
	KeptNewer    int64    `json:"keptNewer"`    // handed out after the token
	ReleasedPods []string `json:"releasedPods"` // the first 1000
}

// R
type GetStatus struct {
	Brief bool `json:"brief,omitempty"` // without history and opening
}

type GetStatusAnswer struct {
	StoreUUID     string          `json:"storeUuid"`
	SchemaVersion int64           `json:"schemaVersion"`
	Commit        int64           `json:"commit"`
	OwnerPID      int64           `json:"ownerPid"` // 0: an observer answers
	Settings      Settings        `json:"settings"`
	Degraded      bool            `json:"degraded"`
	History       []DegradedEvent `json:"history"` // oldest first
	Counts        Counts          `json:"counts"`
	Opening       *Opening        `json:"opening,omitzero"` // of this owner
	Streams       *StreamsOpening `json:"streams,omitzero"` // of a store of streams, instead
}

type GetMetricsAnswer struct {
	Text string `json:"text"` // Prometheus' text format
}

// W. Pulls may be unrecorded from before now: until the next complete list the store is degraded,
// and that list closes each image that nobody knows.
type NoteUnrecordedPeriod struct {
	Reason string `json:"reason"`
}

// W. An operator's word that what was lost is accepted: the store is no longer degraded. Images on
// the node that nobody knows are closed, or with allowAll open to every pod.
type AcceptLoss struct {
	Reason     string        `json:"reason"`
	Images     []ListedImage `json:"images,omitzero"` // none: the next list does it
	AllowAll   bool          `json:"allowAll,omitempty"`
	AllowEmpty bool          `json:"allowEmpty,omitempty"`
	DryRun     bool          `json:"dryRun,omitempty"`
}

type VerifyAnswer struct {
	Sound    bool     `json:"sound"`
	Pages    int64    `json:"pages"`
	Values   int64    `json:"values"`
	Findings []string `json:"findings"`
}

// W, or R with `file`. A checked copy on disk: in backup/, the last three are kept; or, not through
// the socket, a new file outside the store, by its absolute path.
type MakeBackup struct {
	File string `json:"file,omitempty"`
}

// R; not through the socket. Writes the kubelet's own files, and pods/<uid>/userns; the kubelet must
// be stopped.
type ExportKubeletFiles struct {
	KubeletDirectory string            `json:"kubeletDirectory"`
	APIVersion       KubeletApiVersion `json:"apiVersion,omitempty"`
	Images           []ListedImage     `json:"images,omitzero"` // in mode strict they must be given
	AllowEmpty       bool              `json:"allowEmpty,omitempty"`
}

type ExportKubeletFilesAnswer struct {
	Records            int64    `json:"records"`
	Intents            int64    `json:"intents"`
	Preloaded          int64    `json:"preloaded"`
	Closed             int64    `json:"closed"`  // in quarantine: files that the kubelet can't read either
	Made               int64    `json:"made"`    // records without credentials, for images of unknown origin
	Aliases            int64    `json:"aliases"` // records under further aliases
	WithoutCredentials int64    `json:"withoutCredentials"`
	IDMappings         int64    `json:"idMappings"`
	Replaced           string   `json:"replaced"`     // where the files that were there are kept
	RemovedPaths       []string `json:"removedPaths"` // kept there earlier, now deleted
}

// R; not through the socket. What keeps closed, for a kubelet without waybill that is started in the
// place of one with waybill inside, what that one pulled: a record without credentials of each image,
// and the intent of each unresolved pull. Another kubelet's files stay as they are.
type ListKubeletFiles struct {
	KubeletDirectory string `json:"kubeletDirectory"`
	// The runtime's complete list, which ClassifyImages took. Without it no record is needless in mode
	// strict.
	Images []ListedImage `json:"images,omitzero"`
}

// A file below image_manager/.
type MissingFile struct {
	Path    string `json:"path"` // "pulled/sha256-…"
	Content string `json:"content"`
}

type ListKubeletFilesAnswer struct {
	Missing  []MissingFile `json:"missing"`  // to be written
	Needless []string      `json:"needless"` // waybill's own; to be removed once none is missing
}

// L. Takes a store that nobody has open to another schema version, after a backup. Conflict: that
// would lose something, and acceptLoss is false.
type Migrate struct {
	Directory  string `json:"directory"`
	To         int64  `json:"to,omitempty"` // 0: the newest
	AcceptLoss bool   `json:"acceptLoss,omitempty"`
	DryRun     bool   `json:"dryRun,omitempty"`
}

// L
type ListBackups struct {
	Directory string `json:"directory"` // the store's
}

type ListBackupsAnswer struct {
	Backups []Backup `json:"backups"` // newest first
}

// L. Replaces a store by a backup. It is degraded then; credentials that changed since count no
// more.
type Restore struct {
	Directory string `json:"directory"`
	Backup    string `json:"backup"`
	DryRun    bool   `json:"dryRun,omitempty"`
}

type RestoreAnswer struct {
	SchemaVersion             int64    `json:"schemaVersion"`
	BackupCommit              int64    `json:"backupCommit"`
	Records                   int64    `json:"records"`
	RecordsWithoutCredentials int64    `json:"recordsWithoutCredentials"` // to be verified again
	IDMappings                int64    `json:"idMappings"`
	IDMappingsKept            int64    `json:"idMappingsKept"`
	IDMappingsQuarantined     int64    `json:"idMappingsQuarantined"`
	IDMappingsDropped         int64    `json:"idMappingsDropped"`
	IDRangesLost              bool     `json:"idRangesLost"` // others may have been lost, so none is handed out
	Replaced                  string   `json:"replaced"`     // where the replaced store is kept
	RemovedPaths              []string `json:"removedPaths"` // kept there earlier, now deleted
	DegradedBecause           string   `json:"degradedBecause"`
	Streams                   bool     `json:"streams"` // it is a store of streams
}

// L. Who checks the credentials of a pull, by the runtime's configuration. What is not understood is
// unknown, never the registry.
type WhoChecks struct {
	Image          string `json:"image"`
	RuntimeHandler string `json:"runtimeHandler,omitempty"`
	Runtime        string `json:"runtime"`          // name and version: "containerd v2.4.2", "cri-o 1.33.1"
	Status         string `json:"status,omitempty"` // the text of `crictl info`; empty: not at hand
	Config         string `json:"config,omitempty"` // the runtime's configuration file, where it is not at its usual place
	Root           string `json:"root,omitempty"`   // below which its files are; empty: "/"
}

type WhoChecksAnswer struct {
	VerifiedBy VerifiedBy   `json:"verifiedBy"`
	Registry   string       `json:"registry"`
	Others     []PullSource `json:"others"` // hosts that may answer in place of the registry
	Problems   []string     `json:"problems"`
}

// L. Which manifest of an index a runtime on this platform pulls (KEP-4216). NotFound: none.
type ChooseManifest struct {
	Index string    `json:"index"` // its text
	Host  Platform  `json:"host"`
	Guest *Platform `json:"guest,omitzero"`
}

type ChooseManifestAnswer struct {
	MediaType string    `json:"mediaType"`
	Digest    string    `json:"digest"`
	Size      int64     `json:"size"` // bytes; 0: not given
	Platform  *Platform `json:"platform,omitzero"`
}

// L. By the grammar of distribution/reference. InvalidArgument: it does not parse
type ParseImage struct {
	Image string `json:"image"`
}

type ParseImageAnswer struct {
	Name   string `json:"name"`
	Domain string `json:"domain"`
	Path   string `json:"path"`
	Tag    string `json:"tag"`
	Digest string `json:"digest"`
	Full   string `json:"full"` // with registry and tag; empty: ambiguous
}

// L. May the kubelet connect to this address of a streaming server, or follow this redirect
// (KEP-1558)? By default only to a loopback address, and no redirect. No message repeats a path.
type CheckStreamUrl struct {
	URL               string   `json:"url"`
	RedirectFrom      string   `json:"redirectFrom,omitempty"` // url answers a request to this
	Hosts             []string `json:"hosts,omitempty"`
	Ports             []int64  `json:"ports,omitempty"`
	RequireHTTPS      bool     `json:"requireHttps,omitempty"`
	SameHostRedirects bool     `json:"sameHostRedirects,omitempty"`
}

type CheckStreamUrlAnswer struct {
	Refusal string `json:"refusal"` // "notAllowed"; empty: connect to host and port, and ask for path
	Message string `json:"message"`
	Scheme  string `json:"scheme"`
	Host    string `json:"host"`
	Port    int64  `json:"port"`
	Path    string `json:"path"` // holds the token: do not log it
}

// L. How exec, attach and port-forward go for these releases and settings (KEP-1558).
type PlanStreams struct {
	APIServer      string   `json:"apiServer"` // "1.36"
	Kubelet        string   `json:"kubelet"`
	APIServerFlags []string `json:"apiServerFlags,omitempty"`
	KubeletFlags   []string `json:"kubeletFlags,omitempty"`
}

type PlanStreamsAnswer struct {
	Outcome               string          `json:"outcome"`               // "works", "worksOnSameHost", "fails", "doesNotStart"
	Proxy                 string          `json:"proxy"`                 // "kubelet", "redirect"
	Follower              string          `json:"follower"`              // "notNeeded", "apiServer", "nobody"
	RedirectCheck         string          `json:"redirectCheck"`         // "notNeeded", "sameHost", "none"
	ExecWebSockets        string          `json:"execWebSockets"`        // "nobody", "apiServer", "kubelet"
	PortForwardWebSockets string          `json:"portForwardWebSockets"` // "nobody", "apiServer", "kubelet"
	Skew                  string          `json:"skew"`                  // "supported", "kubeletTooOld", "kubeletNewer"
	Findings              []StreamFinding `json:"findings"`
	Notes                 []string        `json:"notes"`
}

// W. Keeps a request under a token that opens it once: 32 hex digits, which nobody can get again.
// LimitExceeded with retryAfterMs: too many are open.
type PrepareStream struct {
	Kind         StreamKind `json:"kind"`
	ContainerID  string     `json:"containerId,omitempty"`  // exec, attach
	PodSandboxID string     `json:"podSandboxId,omitempty"` // portForward
	Command      []string   `json:"command,omitempty"`
	Stdin        bool       `json:"stdin,omitempty"`
	Stdout       bool       `json:"stdout,omitempty"`
	Stderr       bool       `json:"stderr,omitempty"`
	TTY          bool       `json:"tty,omitempty"`
	Ports        []int64    `json:"ports,omitempty"`
}

type PrepareStreamAnswer struct {
	Token string `json:"token"`
}

// W. Uses the token up. NotFound, in one and the same text: it was used, is void, expired, of
// another kind, or was never prepared.
type ConsumeStream struct {
	Token string     `json:"token"`
	Kind  StreamKind `json:"kind"`
}

// The request that the token was given for.
type ConsumeStreamAnswer PrepareStream

type ListStreamsAnswer struct {
	Streams []OpenStream `json:"streams"`
}

// reads are the calls that change nothing if their answer is lost: BeginList draws a number.
var reads = []string{"MustPull", "EnsureImage", "Explain", "ListPulls", "BeginList", "ListImages", "ListRevocations", "ListRuntimes",
	"ListUserNamespaces", "GetStatus", "GetMetrics", "Verify", "ListStreams"}

// Beside an error the answer is "pull".
func (c Calls) MustPull(ctx context.Context, in MustPull) (PullDecision, error) {
	answer, err := call[PullDecision](ctx, c, "MustPull", in)
	answer.Pull = answer.Pull || err != nil
	return answer, err
}
func (c Calls) EnsureImage(ctx context.Context, in EnsureImage) (EnsureImageAnswer, error) {
	return call[EnsureImageAnswer](ctx, c, "EnsureImage", in)
}
func (c Calls) Explain(ctx context.Context, in Explain) (ExplainAnswer, error) {
	return call[ExplainAnswer](ctx, c, "Explain", in)
}
func (c Calls) BeginPull(ctx context.Context, in BeginPull) (BeginPullAnswer, error) {
	return call[BeginPullAnswer](ctx, c, "BeginPull", in)
}
func (c Calls) EndPull(ctx context.Context, in EndPull) error {
	return none(call[struct{}](ctx, c, "EndPull", in))
}
func (c Calls) ListPulls(ctx context.Context, in ListPulls) (ListPullsAnswer, error) {
	return call[ListPullsAnswer](ctx, c, "ListPulls", in)
}
func (c Calls) DropPulls(ctx context.Context, in DropPulls) (DropPullsAnswer, error) {
	return call[DropPullsAnswer](ctx, c, "DropPulls", in)
}

// W. Draws a token. Call it before the images, pods or Secrets are listed.
func (c Calls) BeginList(ctx context.Context) (BeginListAnswer, error) {
	return call[BeginListAnswer](ctx, c, "BeginList", struct{}{})
}
func (c Calls) ClassifyImages(ctx context.Context, in ClassifyImages) (ClassifyReport, error) {
	return call[ClassifyReport](ctx, c, "ClassifyImages", in)
}
func (c Calls) ListImages(ctx context.Context, in ListImages) (ListImagesAnswer, error) {
	return call[ListImagesAnswer](ctx, c, "ListImages", in)
}
func (c Calls) AllowImage(ctx context.Context, in AllowImage) (AllowImageAnswer, error) {
	return call[AllowImageAnswer](ctx, c, "AllowImage", in)
}
func (c Calls) DenyImage(ctx context.Context, in DenyImage) (DenyImageAnswer, error) {
	return call[DenyImageAnswer](ctx, c, "DenyImage", in)
}
func (c Calls) PutImage(ctx context.Context, in PutImage) error {
	return none(call[struct{}](ctx, c, "PutImage", in))
}
func (c Calls) DeleteImage(ctx context.Context, in DeleteImage) error {
	return none(call[struct{}](ctx, c, "DeleteImage", in))
}
func (c Calls) PruneBefore(ctx context.Context, in PruneBefore) (PruneBeforeAnswer, error) {
	return call[PruneBeforeAnswer](ctx, c, "PruneBefore", in)
}
func (c Calls) Revoke(ctx context.Context, in Revoke) (RevokeReport, error) {
	return call[RevokeReport](ctx, c, "Revoke", in)
}
func (c Calls) RevokeMissing(ctx context.Context, in RevokeMissing) (RevokeMissingAnswer, error) {
	if in.Secrets == nil || in.ServiceAccounts == nil {
		return RevokeMissingAnswer{}, notGiven("Secrets and ServiceAccounts")
	}
	return call[RevokeMissingAnswer](ctx, c, "RevokeMissing", in)
}

// A list that was never made must not count as one without entries.
func notGiven(lists string) error {
	return &Error{Name: "InvalidArgument", Message: lists + " must be given; nothing was changed", Hint: "a list without entries is not nil"}
}

func (c Calls) ListRevocations(ctx context.Context, in ListRevocations) (ListRevocationsAnswer, error) {
	return call[ListRevocationsAnswer](ctx, c, "ListRevocations", in)
}

// R
func (c Calls) ListRuntimes(ctx context.Context) (ListRuntimesAnswer, error) {
	return call[ListRuntimesAnswer](ctx, c, "ListRuntimes", struct{}{})
}
func (c Calls) SetRuntimes(ctx context.Context, in SetRuntimes) (RuntimesReport, error) {
	return call[RuntimesReport](ctx, c, "SetRuntimes", in)
}
func (c Calls) ClaimUserNamespace(ctx context.Context, in ClaimUserNamespace) (ClaimUserNamespaceAnswer, error) {
	return call[ClaimUserNamespaceAnswer](ctx, c, "ClaimUserNamespace", in)
}
func (c Calls) ReleaseUserNamespace(ctx context.Context, in ReleaseUserNamespace) (ReleaseUserNamespaceAnswer, error) {
	return call[ReleaseUserNamespaceAnswer](ctx, c, "ReleaseUserNamespace", in)
}
func (c Calls) AssignUserNamespace(ctx context.Context, in AssignUserNamespace) error {
	return none(call[struct{}](ctx, c, "AssignUserNamespace", in))
}
func (c Calls) ListUserNamespaces(ctx context.Context, in ListUserNamespaces) (ListUserNamespacesAnswer, error) {
	return call[ListUserNamespacesAnswer](ctx, c, "ListUserNamespaces", in)
}
func (c Calls) CleanUpUserNamespaces(ctx context.Context, in CleanUpUserNamespaces) (CleanUpUserNamespacesAnswer, error) {
	if in.Existing == nil || in.Running == nil {
		return CleanUpUserNamespacesAnswer{}, notGiven("Existing and Running")
	}
	return call[CleanUpUserNamespacesAnswer](ctx, c, "CleanUpUserNamespaces", in)
}
func (c Calls) GetStatus(ctx context.Context, in GetStatus) (GetStatusAnswer, error) {
	return call[GetStatusAnswer](ctx, c, "GetStatus", in)
}

// R. Never fails
func (c Calls) GetMetrics(ctx context.Context) (GetMetricsAnswer, error) {
	return call[GetMetricsAnswer](ctx, c, "GetMetrics", struct{}{})
}

// W. Waits until the credentials that decisions matched are written back
func (c Calls) Flush(ctx context.Context) error {
	return none(call[struct{}](ctx, c, "Flush", struct{}{}))
}
func (c Calls) NoteUnrecordedPeriod(ctx context.Context, in NoteUnrecordedPeriod) error {
	return none(call[struct{}](ctx, c, "NoteUnrecordedPeriod", in))
}
func (c Calls) AcceptLoss(ctx context.Context, in AcceptLoss) (ClassifyReport, error) {
	return call[ClassifyReport](ctx, c, "AcceptLoss", in)
}

// R. Walks all pages and reads all values. Interrupted
func (c Calls) Verify(ctx context.Context) (VerifyAnswer, error) {
	return call[VerifyAnswer](ctx, c, "Verify", struct{}{})
}
func (c Calls) MakeBackup(ctx context.Context, in MakeBackup) (Backup, error) {
	return call[Backup](ctx, c, "MakeBackup", in)
}
func (c Calls) ExportKubeletFiles(ctx context.Context, in ExportKubeletFiles) (ExportKubeletFilesAnswer, error) {
	return call[ExportKubeletFilesAnswer](ctx, c, "ExportKubeletFiles", in)
}
func (c Calls) ListKubeletFiles(ctx context.Context, in ListKubeletFiles) (ListKubeletFilesAnswer, error) {
	return call[ListKubeletFilesAnswer](ctx, c, "ListKubeletFiles", in)
}
func (c Calls) Migrate(ctx context.Context, in Migrate) (MigrationReport, error) {
	return call[MigrationReport](ctx, c, "Migrate", in)
}
func (c Calls) ListBackups(ctx context.Context, in ListBackups) (ListBackupsAnswer, error) {
	return call[ListBackupsAnswer](ctx, c, "ListBackups", in)
}
func (c Calls) Restore(ctx context.Context, in Restore) (RestoreAnswer, error) {
	return call[RestoreAnswer](ctx, c, "Restore", in)
}
func (c Calls) WhoChecks(ctx context.Context, in WhoChecks) (WhoChecksAnswer, error) {
	return call[WhoChecksAnswer](ctx, c, "WhoChecks", in)
}
func (c Calls) ChooseManifest(ctx context.Context, in ChooseManifest) (ChooseManifestAnswer, error) {
	return call[ChooseManifestAnswer](ctx, c, "ChooseManifest", in)
}
func (c Calls) ParseImage(ctx context.Context, in ParseImage) (ParseImageAnswer, error) {
	return call[ParseImageAnswer](ctx, c, "ParseImage", in)
}
func (c Calls) CheckStreamUrl(ctx context.Context, in CheckStreamUrl) (CheckStreamUrlAnswer, error) {
	return call[CheckStreamUrlAnswer](ctx, c, "CheckStreamUrl", in)
}
func (c Calls) PlanStreams(ctx context.Context, in PlanStreams) (PlanStreamsAnswer, error) {
	return call[PlanStreamsAnswer](ctx, c, "PlanStreams", in)
}
func (c Calls) PrepareStream(ctx context.Context, in PrepareStream) (PrepareStreamAnswer, error) {
	return call[PrepareStreamAnswer](ctx, c, "PrepareStream", in)
}
func (c Calls) ConsumeStream(ctx context.Context, in ConsumeStream) (ConsumeStreamAnswer, error) {
	return call[ConsumeStreamAnswer](ctx, c, "ConsumeStream", in)
}

// R. The tokens that are open, the oldest first
func (c Calls) ListStreams(ctx context.Context) (ListStreamsAnswer, error) {
	return call[ListStreamsAnswer](ctx, c, "ListStreams", struct{}{})
}
