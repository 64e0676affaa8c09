import { Code } from '../../parts/code.tsx'

/** Where no file was read. */
export function NoFiles() {
  return (
    <div class="stack tight">
      <p>
        None was found, so defaults apply. Looked for: <code>--config</code>, <code>TOOLWAY_CONFIG</code>,{' '}
        <code>./toolway.yaml</code>, <code>./.mcp.json</code>, and the user's configuration folder.
      </p>
      <Code text="toolway init" label="Command that writes a configuration" />
    </div>
  )
}
