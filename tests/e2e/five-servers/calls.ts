import { join } from 'node:path'

/** Twenty tools on five servers, with arguments for each. */
export const calls = (path: string): Record<string, Record<string, Record<string, unknown>>> => {
  const echo = { message: 'hello' }
  const four = {
    echo,
    'get-sum': { a: 2, b: 3 },
    'get-tiny-image': {},
    'get-structured-content': { location: 'Chicago' },
  }
  const entity = { name: 'Toolway', entityType: 'gateway', observations: ['forwards'] }
  return {
    local: four,
    remote: four,
    older: four,
    files: {
      write_file: { path: join(path, 'a.txt'), content: 'written through Toolway' },
      read_text_file: { path: join(path, 'a.txt') },
      list_directory: { path },
      get_file_info: { path: join(path, 'a.txt') },
    },
    memory: {
      create_entities: { entities: [entity] },
      add_observations: { observations: [{ entityName: 'Toolway', contents: ['remembers'] }] },
      search_nodes: { query: 'gateway' },
      read_graph: {},
    },
  }
}
