import { createHmac } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Redactor } from '../../audit/redact/redactor.ts'
import { diffOf, type ShownLine } from '../../catalog/pins/definition.ts'
import { filesIn, type StoreSecret, withoutSecrets, writeSecrets } from '../../clients/secrets.ts'
import {
  changesBetween,
  contentOf,
  editText,
  type TextChange,
  valueAt,
  withChanges,
} from '../../config/edit/edit-text.ts'
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
import { isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { policyWarnings } from '../../policy/policy-warnings.ts'
import type { ConfigEdit } from '../contract.ts'
import { type Draft, type EditedFile, newProblems, openEditedFile } from './config-file.ts'
import type { EditHistory, RecordedEdit } from './edit-history.ts'
import { findSecrets } from './find-secrets.ts'
import { secretFiles } from './prepare-import.ts'
import { SecretMask } from './secret-mask.ts'
import { starterWith } from './starter.ts'

/** A change that an operator asks for, with a comment to write above what it adds. */
export type ConfigChange = NonNullable<ConfigEdit['changes']>[number] & { readonly comment?: string | undefined }

export type ResolvedEdit = { readonly changes: readonly ConfigChange[] } | { readonly undo: string }

/** An edit that has not been written. Threads exchange it, so it is plain data. */
export interface Proposal {
  readonly file: Pick<EditedFile, 'path' | 'obstacle'>
  readonly was: string
  /** Identifies what was reviewed: the old content, the new content, and the secrets to be written. */
  readonly hash: string
  readonly after: string
  /**
   * The lines that differ with some lines around them, without secrets. `…` stands for omitted lines. Empty if the edit
   * changes nothing.
   */
  readonly diff: readonly ShownLine[]
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

export class ConfigEditor {
  readonly #options: ConfigEditorOptions

  constructor(options: ConfigEditorOptions) {
    this.#options = options
  }

  async propose(edit: ResolvedEdit): Promise<Proposal> {
    const { source } = this.#options
    const file = await openEditedFile(source)
    const { path, before } = file
    const mask = this.#mask()
    const { files, secretsFolder } = secretFiles(source.env)
    const { after, draft } = await inFile(path, () => this.#textAfter(edit, file, mask, files.keep))
    const old: Draft = before.bytes ? await file.load(before.text) : { problems: [], newReferences: [] }
    const next = await file.load(draft)
    const known = new Set(reloadWarnings(old.loaded))
    const was = this.#hashOf(before)
    return {
      file: { path, obstacle: file.obstacle },
      was,
      hash: this.#digest(JSON.stringify([was, after, files.files])),
      after,
      diff: after === before.text && files.files.length === 0 ? [] : maskedDiff(mask, path, before.text, after),
      paths: changedPaths(path, before.text, after),
      problems: newProblems(old.problems, next.problems),
      warnings: [
        ...(file.obstacle === undefined ? [] : files.files.map(createByHand)),
        ...unusedSecrets(before.text, after, secretsFolder),
        ...reloadWarnings(next.loaded).filter((warning) => !known.has(warning)),
      ],
      references: 'undo' in edit ? [] : next.newReferences,
      loaded: next.loaded && { config: next.loaded.config, secrets: next.loaded.secrets },
      secretFiles: files.files,
      undoes: 'undo' in edit ? edit.undo : undefined,
    }
  }

  /** The file, and why it cannot be edited; undefined if it can. */
  async file(): Promise<Pick<EditedFile, 'path' | 'obstacle'> & { readonly exists: boolean }> {
    const { path, before, obstacle } = await openEditedFile(this.#options.source)
    return { path, exists: before.bytes !== undefined, obstacle }
  }

  /** The values in the file without secrets, and the hash of what is at a path. */
  async content(): Promise<{ readonly values: unknown; hashAt(path: Path): string }> {
    const { path, before } = await openEditedFile(this.#options.source)
    return await inFile(path, async () => {
      const content = contentOf(path, before.text)
      return { values: this.#mask().maskValues(content), hashAt: (at: Path) => this.#hashAt(content, at) }
    })
  }

  /** Writes a proposal, unless it differs from the one that `hash` identifies. Secrets are written first. */
  async apply(proposal: Proposal, hash: string, by: string): Promise<RecordedEdit> {
    const { file, problems } = proposal
    if (file.obstacle !== undefined) throw new EditConflict(file.obstacle)
    if (proposal.hash !== hash) throw changedMeanwhile(file.path)
    if (problems.length > 0) throw invalidArguments(problems.map(problemText).join('; '))
    return await inFile(file.path, () => this.#write(proposal, by))
  }

  async #write(proposal: Proposal, by: string): Promise<RecordedEdit> {
    const { history, now } = this.#options
    const { file, after, paths } = proposal
    await using _lock = await lockForEdit(await readSnapshot(file.path))
    const before = await readSnapshot(file.path, 0o644)
    if (this.#hashOf(before) !== proposal.was) throw changedMeanwhile(file.path)
    await writeSecrets(proposal.secretFiles)
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
    const recorded = await history.add(edit)
    try {
      await replaceFile(before, Buffer.from(edit.after))
    } catch (thrown) {
      await history.remove(recorded.id)
      throw thrown
    }
    return recorded
  }

  history(): Promise<RecordedEdit[]> {
    return this.#options.history.list()
  }

  #mask(): SecretMask {
    return new SecretMask(this.#options.redactor(), this.#options.key)
  }

  #digest(content: string | Buffer): string {
    return createHmac('sha256', this.#options.key).update(content).digest('hex').slice(0, 32)
  }

  #hashOf({ bytes }: FileSnapshot): string {
    return this.#digest(bytes ?? 'no file')
  }

  #hashAt(content: unknown, path: Path): string {
    return this.#digest(JSON.stringify(valueAt(content, path)) ?? 'nothing')
  }

  /** The text after an edit. In `draft`, new secrets are still inline, because their files do not exist yet. */
  async #textAfter(edit: ResolvedEdit, { path, before }: EditedFile, mask: SecretMask, keep: StoreSecret) {
    const base = before.bytes ? before.text : starterWith('')
    if ('undo' in edit) {
      const recorded = await this.#options.history.find(edit.undo)
      if (!recorded) throw invalidArguments(`There is no edit ${quote(edit.undo)} in the history.`)
      const after = undone(recorded, path, base)
      return { after, draft: after }
    }
    this.#refuseOutdated(edit.changes, contentOf(path, before.text))
    const renames = edit.changes.flatMap(({ path, rename }) => (rename === undefined ? [] : [{ path, rename }]))
    const renamed = editText(path, base, renames)
    const content = contentOf(path, renamed)
    const taken = edit.changes.find(({ path, isNew }) => isNew && valueAt(content, path) !== undefined)
    if (taken) throw invalidArguments(`${keyPath(taken.path)} already exists: choose another name.`)
    const masked = mask.maskValues(content)
    const changes = edit.changes.filter(({ rename }) => rename === undefined).map(plainChange)
    const wanted = withChanges(masked, changes)
    const stored = await withStoredSecrets(masked, wanted, keep)
    const comments = new Map(edit.changes.map(({ path, comment }) => [keyPath(path), comment]))
    const textWith = (value: unknown): string => {
      const changes = changesBetween(content, mask.restoreValues(value))
      const commented = changes.map((change) => ({ ...change, comment: comments.get(keyPath(change.path)) }))
      return editText(path, renamed, commented)
    }
    const after = textWith(stored)
    return { after, draft: isDeepStrictEqual(stored, wanted) ? after : textWith(wanted) }
  }

  /** Refuses an edit of something that has changed since the edit was begun: it would revert that change. */
  #refuseOutdated(changes: readonly ConfigChange[], content: unknown): void {
    const other = changes.find(({ path, was }) => was !== undefined && was !== this.#hashAt(content, path))
    if (!other) return
    const change = valueAt(content, other.path) === undefined ? 'removed' : 'changed'
    throw new EditConflict(
      `${keyPath(other.path)} has been ${change} since you started to edit it; nothing was written.`,
    )
  }
}

type SecretFiles = ReturnType<typeof secretFiles>['files']['files']

const maxDiffLines = 500

const changedMeanwhile = (path: string) =>
  new EditConflict(
    `${path}, or what is added to it, has changed since the preview; nothing was written. Review the change again.`,
  )

/** The warnings that a reload would report. */
const reloadWarnings = (loaded: LoadedConfig | undefined): readonly string[] =>
  loaded ? [...loaded.warnings, ...policyWarnings(loaded.config)] : []

/** Names the files with secrets that only the old text refers to. They stay, because undoing the edit needs them. */
function unusedSecrets(before: string, after: string, folder: string): string[] {
  const unused = new Set(filesIn(before)).difference(new Set(filesIn(after)))
  return [...unused]
    .filter((path) => path.startsWith(`${folder}/`))
    .map((path) => `The secret in ${path} stays there, so that this can be undone. Delete it if it is not needed.`)
}

/** What to do about a new secret if the file cannot be written here. */
const createByHand = ({ path }: SecretFiles[number]): string =>
  `The new text refers to ${path}. Create this file with the secret as its content.`

function maskedDiff(mask: SecretMask, path: string, before: string, after: string): readonly ShownLine[] {
  const [old, now] = [mask.maskText(path, before), mask.maskText(path, after)]
  return old === undefined || now === undefined ? [] : diffOf(old, now)
}

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

const plainChange = ({ path, value, yaml }: ConfigChange): TextChange => ({
  path,
  value: yaml === undefined ? value : contentOf('value.yaml', yaml),
})

/** Moves the secrets that a change adds to private files. Secrets that were in the file before stay where they are. */
async function withStoredSecrets(before: unknown, wanted: unknown, keep: StoreSecret): Promise<unknown> {
  const keepNew: StoreSecret = async (secret, server, key) =>
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
