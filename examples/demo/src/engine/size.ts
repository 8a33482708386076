/** size */
export {};
