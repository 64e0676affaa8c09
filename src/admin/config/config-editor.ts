import { createHmac } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Redactor } from '../../audit/redact/redactor.ts'
import { diffOf, type ShownLine } from '../../catalog/pins/definition-diff.ts'
import { filesIn, withoutSecrets, writeSecrets } from '../../clients/secrets.ts'
import { changesBetween, contentOf, editText, type TextChange, valueAt } from '../../config/edit/edit-text.ts'
import { FileProblem, type FileSnapshot, lockForEdit, readSnapshot, replaceFile } from '../../config/edit/file.ts'
import type { ServerDefinition } from '../../config/import/read-servers.ts'
import type { NewReference } from '../../config/interpolate.ts'
import type { LoadedConfig } from '../../config/load.ts'
import type { ConfigSource } from '../../config/locate.ts'
import { type ConfigProblem, problemText } from '../../config/problems.ts'
import { secretKindAt } from '../../config/schema-lookup.ts'
import { keyPath, type Path } from '../../config/tree.ts'
import { secretPlaceholder } from '../../config/validate.ts'
import { invalidArguments } from '../../core/errors.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { policyWarnings } from '../../policy/policy-warnings.ts'
import { type Draft, type EditedFile, newProblems, openEditedFile } from './config-file.ts'
import type { EditHistory, RecordedEdit } from './edit-history.ts'
import { findSecrets } from './find-secrets.ts'
import { createSecretHider } from './hide-secrets.ts'
import { secretFiles } from './prepare-import.ts'
import { starterWith } from './starter.ts'

/** A change that an operator asks for. Without `value`, `yaml` and `rename`, what is at the path is removed. */
export interface ConfigChange {
  readonly path: Path
  readonly value?: unknown
  /** The value as YAML, instead of `value`. */
  readonly yaml?: string | undefined
  readonly rename?: string | undefined
  /** Whether to refuse the change if there is something at the path. */
  readonly isNew?: boolean | undefined
  /** The hash of what was at the path when the edit was begun. If it has changed since, the edit is a conflict. */
  readonly was?: string | undefined
  readonly comment?: string | undefined
}

export type ResolvedEdit =
  | { readonly changes: readonly ConfigChange[] }
  /** The whole content of the file. `was` is the hash of the file when the edit was begun. */
  | { readonly text: string; readonly was?: string | undefined }
  /** The id of the edit to undo. */
  | { readonly undo: string }

/** An edit that has not been written. Threads exchange it, so it is plain data. */
export interface Proposal {
  readonly file: Pick<EditedFile, 'path' | 'obstacle'>
  /** The hash of the file's content before the edit. */
  readonly was: string
  /** Identifies what was reviewed: the old content, the new content, and the secrets to be written. */
  readonly hash: string
  readonly after: string
  /**
   * The lines that differ with some lines around them, without secrets. `…` stands for omitted lines. Empty if the edit
   * changes nothing.
   */
  readonly diff: readonly ShownLine[]
  /** The new content without secrets, to be copied; undefined if it cannot be shown. */
  readonly shown: string | undefined
  /** What is changed, such as `mcpServers.files.args`. */
  readonly paths: readonly string[]
  /** Problems that the change would cause. A proposal with problems is not applied. */
  readonly problems: readonly ConfigProblem[]
  readonly warnings: readonly string[]
  /** References that the edit adds and that it does not only restore. A person confirms them before it is applied. */
  readonly references: readonly NewReference[]
  /** The configuration with the change; undefined if it is invalid. New secrets are not in their files yet. */
  readonly loaded: Pick<LoadedConfig, 'config' | 'secrets'> | undefined
  /** The secrets that the new text refers to, with the files to write. */
  readonly secretFiles: SecretFiles
  readonly undoes: string | undefined
}

export interface ConfigEditorOptions {
  readonly source: ConfigSource
  redactor(): Pick<Redactor, 'text'>
  readonly history: EditHistory
  /** The key of the hashes, because short secrets in a file could be guessed from a plain hash. */
  readonly key: string
  now(): number
}

export class EditConflict extends Error {
  override readonly name = 'EditConflict'
}

/** Proposes and applies edits of the operator's own configuration file. */
export function createConfigEditor({ source, redactor, history, key, now }: ConfigEditorOptions) {
  const digest = (content: string | Buffer): string =>
    createHmac('sha256', key).update(content).digest('hex').slice(0, 32)
  const hashOf = ({ bytes }: FileSnapshot): string => digest(bytes ?? 'no file')
  const partHash = (content: unknown, path: Path): string => digest(JSON.stringify(valueAt(content, path)) ?? 'nothing')

  /** Refuses an edit of something that has changed since the edit was begun: it would revert that change. */
  const refuseOutdated = (edit: ResolvedEdit, file: EditedFile): void => {
    const { path, before } = file
    if ('text' in edit && edit.was !== undefined && edit.was !== hashOf(before)) throw outdated(path, 'changed')
    const known = 'changes' in edit ? edit.changes.filter(({ was }) => was !== undefined) : []
    if (known.length === 0) return
    const content = contentOf(path, before.text)
    const other = known.find((change) => change.was !== partHash(content, change.path))
    if (!other) return
    throw outdated(keyPath(other.path), valueAt(content, other.path) === undefined ? 'removed' : 'changed')
  }

  const propose = async (edit: ResolvedEdit): Promise<Proposal> => {
    const file = await openEditedFile(source)
    const { path, before } = file
    const base = before.bytes ? before.text : starterWith('')
    const hider = createSecretHider(redactor(), key)
    const shownBefore = hider.hide(path, before.text)
    const { files, secretsFolder } = secretFiles(source.env)
    const { after, draft } = await inFile(path, () => {
      refuseOutdated(edit, file)
      return editedText(edit, path, base, hider, files.keep)
    })
    const old: Draft = before.bytes ? await file.load(before.text) : { problems: [], newReferences: [] }
    const next = await file.load(draft)
    const known = new Set(warningsOf(old.loaded))
    const shown = hider.hide(path, after)
    const changesNothing = after === before.text && files.files.length === 0
    const was = hashOf(before)
    return {
      file: { path, obstacle: file.obstacle },
      was,
      hash: digest(JSON.stringify([was, after, files.files])),
      after,
      diff: changesNothing || shownBefore === undefined || shown === undefined ? [] : diffOf(shownBefore, shown),
      shown,
      paths: changedPaths(path, before.text, after),
      problems: newProblems(old.problems, next.problems),
      warnings: [
        ...(file.obstacle === undefined ? [] : copyWarnings(shown ?? '', files.files)),
        ...unusedSecrets(before.text, after, secretsFolder),
        ...warningsOf(next.loaded).filter((warning) => !known.has(warning)),
      ],
      references: 'undo' in edit ? [] : next.newReferences,
      loaded: next.loaded && { config: next.loaded.config, secrets: next.loaded.secrets },
      secretFiles: files.files,
      undoes: 'undo' in edit ? edit.undo : undefined,
    }
  }

  /** The text after an edit. In `draft`, new secrets are still inline, because their files do not exist yet. */
  const editedText = async (
    edit: ResolvedEdit,
    path: string,
    base: string,
    hider: ReturnType<typeof createSecretHider>,
    keep: (secret: string, server: string, key: string) => Promise<string>,
  ): Promise<{ readonly after: string; readonly draft: string }> => {
    if ('undo' in edit) {
      const after = undone(await editOf(edit.undo), path, base)
      return { after, draft: after }
    }
    if ('text' in edit) {
      const after = hider.restore(edit.text)
      return { after, draft: after }
    }
    const renames = edit.changes.flatMap(({ path, rename }) => (rename === undefined ? [] : [{ path, rename }]))
    const renamed = editText(path, base, renames)
    const content = contentOf(path, renamed)
    const taken = edit.changes.find(({ path, isNew }) => isNew && valueAt(content, path) !== undefined)
    if (taken) throw invalidArguments(`${keyPath(taken.path)} already exists: choose another name.`)
    const shown = hider.hideValues(content)
    const wanted = edit.changes.filter(({ rename }) => rename === undefined).reduce(withChange, shown)
    const stored = await withStoredSecrets(shown, wanted, keep)
    const comments = new Map(edit.changes.map(({ path, comment }) => [keyPath(path), comment]))
    const textWith = (value: unknown): string => {
      const changes = changesBetween(content, hider.restoreValues(value))
      return editText(
        path,
        renamed,
        changes.map((change) => ({ ...change, comment: comments.get(keyPath(change.path)) })),
      )
    }
    const after = textWith(stored)
    return { after, draft: isDeepStrictEqual(stored, wanted) ? after : textWith(wanted) }
  }

  const editOf = async (id: string): Promise<RecordedEdit> => {
    const edit = await history.find(id)
    if (edit) return edit
    throw invalidArguments(`There is no edit ${quote(id)} in the history.`)
  }

  return {
    propose,
    async file() {
      const file = await openEditedFile(source)
      const { path, before, obstacle, fault } = file
      const hider = createSecretHider(redactor(), key)
      return {
        path,
        exists: before.bytes !== undefined,
        obstacle: obstacle ?? fault,
        text: hider.hide(path, before.text),
        hash: hashOf(before),
      }
    },
    /** The values in the file without secrets, and the hash of what is at a path. */
    async content() {
      const { path, before } = await openEditedFile(source)
      return await inFile(path, async () => {
        const content = contentOf(path, before.text)
        const values: unknown = createSecretHider(redactor(), key).hideValues(content)
        return { values, hashAt: (at: Path) => partHash(content, at) }
      })
    },
    /** Writes a proposal, unless it differs from the one that `hash` identifies. Secrets are written first. */
    async apply(proposal: Proposal, hash: string, by: string): Promise<RecordedEdit> {
      const { file, after, problems, paths } = proposal
      if (file.obstacle !== undefined) throw new EditConflict(file.obstacle)
      if (proposal.hash !== hash) throw changedMeanwhile(file.path)
      if (problems.length > 0) throw invalidArguments(problems.map(problemText).join('; '))
      await using _lock = await inFile(file.path, async () => lockForEdit(await readSnapshot(file.path)))
      const before = await inFile(file.path, () => readSnapshot(file.path, 0o644))
      if (hashOf(before) !== proposal.was) throw changedMeanwhile(file.path)
      await inFile(file.path, () => writeSecrets(proposal.secretFiles))
      const edit = {
        at: now(),
        by,
        file: file.path,
        paths,
        undoes: proposal.undoes,
        diff: proposal.diff.slice(0, maxDiffLines),
        before: before.bytes ? before.mark + before.text : null,
        after: before.mark + after,
      }
      // Record the edit first: if that fails, the file is unchanged.
      const recorded = await inFile(file.path, () => history.add(edit))
      try {
        await inFile(file.path, () => replaceFile(before, Buffer.from(edit.after)))
      } catch (thrown) {
        await history.remove(recorded.id)
        throw thrown
      }
      return recorded
    },
    history: () => history.list(),
  }
}

type SecretFiles = ReturnType<typeof secretFiles>['files']['files']

const maxDiffLines = 500

export type ConfigEditor = ReturnType<typeof createConfigEditor>

const changedMeanwhile = (path: string) =>
  new EditConflict(
    `${path}, or what is added to it, has changed since the preview; nothing was written. Review the change again.`,
  )

/** The warnings that a reload would report. */
const warningsOf = (loaded: LoadedConfig | undefined): readonly string[] =>
  loaded ? [...loaded.warnings, ...policyWarnings(loaded.config)] : []

/** Names the files with secrets that only the old text refers to. They stay, because undoing the edit needs them. */
function unusedSecrets(before: string, after: string, folder: string): string[] {
  const used = new Set(filesIn(after))
  const unused = filesIn(before).filter((path) => path.startsWith(`${folder}/`) && !used.has(path))
  return unused.map(
    (path) => `The secret in ${path} stays there, so that this can be undone. Delete it if it is not needed.`,
  )
}

/** Instructions for copying the new text by hand if the file cannot be written here. */
function copyWarnings(shown: string, secrets: SecretFiles): string[] {
  const places = shown
    .split('\n')
    .flatMap((line, index) => (secretPlaceholder.test(line) ? [`line ${index + 1} (${line.trim()})`] : []))
  return [
    ...(places.length === 0
      ? []
      : [`The new text has placeholders where the file has secrets. Put the secrets back in ${places.join(', ')}.`]),
    ...secrets.map(({ path }) => `The new text refers to ${path}. Create this file with the secret as its content.`),
  ]
}

const outdated = (what: string, change: 'changed' | 'removed') =>
  new EditConflict(`${what} has been ${change} since you started to edit it; nothing was written.`)

/** Reports why a file, or one that is written with it, cannot be edited as an error of the request. */
async function inFile<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    const { syscall, message } = thrown as NodeJS.ErrnoException
    if (syscall !== undefined) throw invalidArguments(`${path} was not changed: ${message}.`)
    if (!(thrown instanceof FileProblem)) throw thrown
    const hint = thrown.hint === undefined ? '' : ` ${thrown.hint}`
    throw invalidArguments(`${path} was not changed: ${thrown.message.replace(/\.$/, '')}.${hint}`)
  }
}

/** A copy of the content with a requested change. */
function withChange(content: unknown, { path, value, yaml }: ConfigChange): unknown {
  const wanted = yaml === undefined ? value : contentOf('value.yaml', yaml)
  const [key, ...rest] = path
  if (key === undefined) return wanted
  if (Array.isArray(content)) {
    const index = Number(key)
    if (!(index >= 0 && index < content.length + (wanted === undefined || rest.length > 0 ? 0 : 1))) {
      throw new FileProblem(`it has no ${keyPath(path)}`)
    }
    if (rest.length > 0) return content.with(index, withChange(content[index], { path: rest, value: wanted }))
    return wanted === undefined ? content.toSpliced(index, 1) : content.toSpliced(index, 1, wanted)
  }
  const old = valueAt(content, [key])
  if (wanted === undefined && old === undefined) throw new FileProblem(`it has no ${keyPath(path)}`)
  if (rest.length === 0 && wanted === undefined) {
    const { [key]: _, ...others } = asRecord(content)
    return others
  }
  const next =
    rest.length === 0
      ? wanted
      : withChange(old ?? (typeof rest[0] === 'number' ? [] : {}), { path: rest, value: wanted })
  return { ...asRecord(content), [key]: next }
}

/** Moves the secrets that a change adds to private files. Secrets that were in the file before stay where they are. */
async function withStoredSecrets(
  before: unknown,
  wanted: unknown,
  keep: (secret: string, server: string, key: string) => Promise<string>,
): Promise<unknown> {
  const keepNew: typeof keep = async (secret, server, key) =>
    secretPlaceholder.test(secret) ? secret : keep(secret, server, key)
  const walk = async (old: unknown, value: unknown, path: Path): Promise<unknown> => {
    if (isDeepStrictEqual(old, value)) return value
    if (path.length === 2 && path[0] === 'mcpServers' && isRecord(value)) {
      return (await withoutSecrets(String(path[1]), value as ServerDefinition, findSecrets, keepNew)).definition
    }
    if (typeof value === 'string' && secretKindAt(path) === true) {
      const isStored = value.includes('${') || value === 'generated' || value === 'none' || value === ''
      return isStored ? value : await keepNew(value, path.slice(0, -1).join('.'), String(path.at(-1)))
    }
    if (Array.isArray(value)) {
      const items = Array.isArray(old) ? old : []
      return Promise.all(value.map((item, index) => walk(items[index], item, [...path, index])))
    }
    if (!isRecord(value)) return value
    const parts: [string, unknown][] = []
    for (const [key, part] of Object.entries(value)) {
      parts.push([key, await walk(valueAt(old, [key]), part, [...path, key])])
    }
    return Object.fromEntries(parts)
  }
  return await walk(before, wanted, [])
}

/** The text without an edit. If the file was edited since, only what that edit changed is changed back. */
function undone({ file, before, after }: RecordedEdit, path: string, text: string): string {
  if (file !== path) throw new EditConflict(`That edit was made in ${file}, which is not the configuration file now.`)
  // The defaults apply with an empty section; without its file, a running gateway would not reload.
  const old = before === null ? '{}\n' : before.replace(/^\ufeff/, '')
  const now = after.replace(/^\ufeff/, '')
  if (text === now) return old
  const content = contentOf(path, text)
  const [from, to] = [contentOf(path, now), contentOf(path, old)]
  const changes = changesBetween(from, to)
  const others = changes
    .map(({ path }) => listOrValue(path))
    .filter((at) => !isDeepStrictEqual(valueAt(content, at), valueAt(from, at)))
  if (others.length > 0) {
    const keys = [...new Set(others.map(keyPath))].join(', ')
    throw new EditConflict(`This cannot be undone, because ${keys} has been changed again since.`)
  }
  return editText(path, text, changes)
}

/** The path of the list that contains an item, because its index may mean another item by now. */
function listOrValue(path: Path): Path {
  const index = path.findIndex((part) => typeof part === 'number')
  return index < 0 ? path : path.slice(0, index)
}

function changedPaths(path: string, before: string, after: string): string[] {
  try {
    const changes: readonly TextChange[] = changesBetween(contentOf(path, before), contentOf(path, after))
    return [...new Set(changes.map((change) => keyPath(listOrValue(change.path))))].slice(0, 100)
  } catch {
    return []
  }
}
