{{/* image: IMAGE of the values, with the chart's version where none is named. Call it with (list . IMAGE). */}}
{{- define "waybill.image" -}}
{{- $root := index . 0 }}{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "waybill.labels" -}}
app.kubernetes.io/name: waybill
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* Of a container that is root since files and sockets are root's, and has none of root's other powers. */}}
{{- define "waybill.rootWithoutPowers" -}}
runAsUser: 0
runAsGroup: 0
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- with .Values.seLinuxOptions }}
seLinuxOptions:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "waybill.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The guard in a container. What it shares with the host is as little as a guard can do with. */}}
{{- define "waybill.guard" -}}
# To see whether a kubelet runs, and since it shares its store with commands in other pods, which know who
# reads it by process IDs.
hostPID: true
automountServiceAccountToken: false
enableServiceLinks: false
priorityClassName: {{ .Values.priorityClassName }}
terminationGracePeriodSeconds: 30
containers:
  - name: guard
    image: {{ include "waybill.image" (list . .Values.image) }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args:
      - guard
      - --store={{ .Values.storeDir }}
      - --kubelet-dir={{ .Values.kubeletDir }}
      - --cri=unix://{{ .Values.runtimeSocket }}
      {{- with .Values.guardArgs }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    securityContext:
      {{- include "waybill.rootWithoutPowers" . | nindent 6 }}
    readinessProbe:
      exec:
        command: [/waybill, guard, --status, --kubelet-dir={{ .Values.kubeletDir }}]
      periodSeconds: 30
      timeoutSeconds: 10
    resources:
      {{- toYaml .Values.resources | nindent 6 }}
    volumeMounts:
      # What the host unmounts goes here, too: the guard holds no volume or root of a container that ended.
      - name: kubelet
        mountPath: {{ .Values.kubeletDir }}
        mountPropagation: HostToContainer
      - name: store
        mountPath: {{ .Values.storeDir }}
      - name: runtime
        mountPath: {{ dir .Values.runtimeSocket }}
        mountPropagation: HostToContainer
        readOnly: true
volumes:
  - name: kubelet
    hostPath:
      path: {{ .Values.kubeletDir }}
      type: Directory
  - name: store
    hostPath:
      path: {{ .Values.storeDir }}
      type: DirectoryOrCreate
  - name: runtime
    hostPath:
      path: {{ dir .Values.runtimeSocket }}
      type: Directory
{{- end }}
