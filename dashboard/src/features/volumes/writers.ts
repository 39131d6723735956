/** Who may write to a volume at once, in the words of a form. */
export const WRITERS = [
  { value: 'single_writer', label: 'One instance: deployments stop the old one first' },
  { value: 'shared', label: 'Many instances: the program locks its files itself' },
]
