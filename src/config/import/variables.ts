import { basename } from 'node:path'
import { escapeVariables } from '../interpolate.ts'

/** Rewrites another program's variables to our syntax. */
export type RewriteVariable = (text: string) => string

/** OpenCode: `{env:NAME}` and `{file:PATH}`. */
export const bracedVariables: RewriteVariable = (text) =>
  escapeVariables(text)
    .replace(/\{env:([A-Za-z_]\w*)\}/g, (_, name: string) => `\${${name}}`)
    .replace(/\{file:([^{}]+)\}/g, (_, path: string) => `\${file:${path}}`)

/** Gemini CLI: `$NAME` and `${NAME}`. */
export const bareVariables: RewriteVariable = (text) =>
  text.replace(/(?<!\$)\$([A-Za-z_]\w*)/g, (_, name: string) => `\${${name}}`)

/**
 * Expands variables that an editor sets, such as folders. Without a workspace, `${workspaceFolder}` stays a variable
 * that the user must set. Other editor variables are rejected during interpolation.
 */
export const editorVariables = (workspace: string | undefined): RewriteVariable => {
  const separator = process.platform === 'win32' ? '\\' : '/'
  const known: Readonly<Record<string, string>> = {
    userHome: process.platform === 'win32' ? '${USERPROFILE}' : '${HOME}',
    pathSeparator: separator,
    '/': separator,
    ...(workspace !== undefined && {
      workspaceFolder: escapeVariables(workspace),
      workspaceRoot: escapeVariables(workspace),
      cwd: escapeVariables(workspace),
      workspaceFolderBasename: escapeVariables(basename(workspace)),
    }),
  }
  return (text) =>
    text.replace(/(?<!\$)\$\{([\w/]+)\}/g, (written, name: string) =>
      Object.hasOwn(known, name) ? (known[name] as string) : written,
    )
}

/** `${input:api-key}` becomes `${INPUT_API_KEY}`. */
export const inputVariable = (id: string): string => `INPUT_${id.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}`
