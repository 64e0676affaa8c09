import * as z from 'zod'
import * as figures from '../overview/schema.ts'
import { adminRoute, type Route } from '../router.ts'
import * as edit from './schema.ts'

export const configRoutes: readonly Route[] = [
  adminRoute('GET', 'config', 'The effective configuration without secrets, and the reload history', {
    answer: figures.configView,
    run: (_, { admin }) => admin.config(),
  }),
  adminRoute('POST', 'config/reload', 'Reloads the configuration; an invalid one is not applied', {
    answer: figures.reloadEvent,
    run: ({ caller }, { admin }) => admin.reload(caller),
  }),
]

/** Edits of the operator's own configuration file, and servers to add to it. */
export const configEditRoutes: readonly Route[] = [
  adminRoute('GET', 'config/file', 'The configuration file that edits change', {
    answer: edit.configFileView,
    run: (_, { admin }) => admin.configFile(),
  }),
  adminRoute('POST', 'config/preview', 'What an edit of the configuration file would change; writes nothing', {
    body: edit.configEdit,
    answer: edit.editProposal,
    run: ({ body }, { admin }) => admin.previewEdit(body),
  }),
  adminRoute('POST', 'config/apply', 'Edits the configuration file and reloads it in all processes', {
    body: edit.applyEdit,
    answer: edit.appliedEdit,
    run: ({ caller, body: { hash, ...body } }, { admin }) => admin.applyEdit(caller, body, hash),
  }),
  adminRoute('GET', 'config/history', 'The latest edits of the configuration file, newest first', {
    answer: z.array(edit.configEditRecord),
    run: (_, { admin }) => admin.configEdits(),
  }),
  adminRoute('POST', 'config/undo', 'Undoes an edit of the configuration file', {
    body: edit.undoEdit,
    answer: edit.appliedEdit,
    run: ({ caller, body: { id, hash } }, { admin }) => admin.applyEdit(caller, { undo: id }, hash),
  }),
  adminRoute('GET', 'config/servers/found', "Servers in the files of the MCP clients on the gateway's machine", {
    answer: z.array(edit.foundServer),
    run: (_, { admin }) => admin.foundServers(),
  }),
  adminRoute(
    'POST',
    'config/servers/test',
    'Starts the servers that an edit adds or changes, and says what they offer',
    {
      body: edit.configEdit,
      answer: z.array(edit.serverTest),
      run: ({ caller, body, signal }, { admin }) => admin.testServers(caller, body, signal),
    },
  ),
  adminRoute('GET', 'config/servers/form', 'What a form for a server needs: its JSON schema', {
    answer: edit.serverForm,
    run: (_, { admin }) => admin.serverForm(),
  }),
  adminRoute('GET', 'config/registry', 'Servers in the MCP registry (registry.url) that match a text', {
    query: edit.registryQuery,
    answer: z.array(edit.registryServer),
    run: ({ query, signal }, { admin }) => admin.searchRegistry(query.search, signal),
  }),
  adminRoute('GET', 'servers/{name}/definition', 'A server as the configuration file defines it', {
    answer: edit.serverDefinitionView,
    run: ({ target }, { admin }) => admin.serverDefinition(target),
  }),
]
