import { Code } from '../../parts/code.tsx'

export function NoFiles() {
  return (
    <div class="stack tight">
      <p>
        No configuration file found; the defaults apply. Searched: <code>--config</code>, <code>TOOLWAY_CONFIG</code>,{' '}
        <code>./toolway.yaml</code>, <code>./.mcp.json</code>, and the configuration folder of the user.
      </p>
      <Code text="toolway init" label="Command to create a configuration" />
    </div>
  )
}
