import type { Output } from './output.ts'

/** Servers run as the user who runs Toolway: as root, one that misbehaves can do anything. Not for programs to read. */
export function warnOfRoot(output: Output, uid = process.getuid?.()): void {
  if (uid !== 0 || output.json) return
  output.note(
    output.paintNote(
      'yellow',
      'Warning: Toolway runs as root, and so does every server that it starts. Run it as another user: ' +
        '`User=` in a systemd unit, `--user 10001:10001` or `runAsUser` for a container.',
    ),
  )
}
